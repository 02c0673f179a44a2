/** A process that moves money until it is killed, and tells its parent of each move before and after. */
import { Cluster, type ClusterNode, Redis } from 'ioredis'
import { RedisStore } from '../../../src/stripe402/index.js'

export interface Orders {
  readonly url?: string
  readonly cluster?: ClusterNode[]
  readonly clientId: string
  /** Moves under way at once. */
  readonly atOnce: number
}

export type Told = { readonly begun: string } | { readonly done: string; readonly balance: number | null }

const { url, cluster, clientId, atOnce } = JSON.parse(process.argv[2] as string) as Orders
const store = new RedisStore(cluster ? new Cluster(cluster) : new Redis(url as string))

/** Resolves when it has left this process. */
const tell = (told: Told) => new Promise<void>((resolve) => process.send?.(told, () => resolve()))

async function moveOn(lane: number): Promise<never> {
  for (let n = 0; ; n += 1) {
    const id = `${process.pid}-${lane}-${n}`
    await tell({ begun: id })
    const type = n % 4 === 3 ? 'topup' : 'deduction'
    const balance = await store.move({ id, clientId, type, amount: 1 + ((lane + n) % 7) })
    await tell({ done: id, balance })
  }
}

await Promise.all(Array.from({ length: atOnce }, (_, lane) => moveOn(lane)))
