/** Real processes, killed in the middle of moves: for each move the balance and the transaction, or neither. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { RedisStore, type TransactionRecord } from 'holdfast/stripe402'
import { Cluster, Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { freshRedis, sharedCluster } from '../../../../test/servers.js'
import { clientOf } from '../../src/stripe402/conformance/subject.js'
import type { Orders, Told } from './support/mover.js'

/** Where what it imports is found, and nothing is checked in. */
const FOLDER = fileURLToPath(new URL('../../../../node_modules/.cache/holdfast', import.meta.url))
const MOVER = join(FOLDER, `mover-${process.pid}.mjs`)
const START = 1_000_000
const AT_ONCE = 8
/** Processes alive at one time. */
const LANES = 2

beforeAll(async () => {
  mkdirSync(FOLDER, { recursive: true })
  await build({
    entryPoints: [fileURLToPath(new URL('support/mover.ts', import.meta.url))],
    outfile: MOVER,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: 'external',
    logLevel: 'warning',
  })
})
afterAll(() => rmSync(MOVER, { force: true }))

interface Life {
  readonly begun: readonly string[]
  readonly done: ReadonlyMap<string, number | null>
}

/** Lives for so many moves that it has begun, then is killed, in the same moment that it begins another. */
async function liveAndDie(orders: Orders, moves: number): Promise<Life> {
  const child = fork(MOVER, [JSON.stringify(orders)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const ended = once(child, 'exit')
  const begun: string[] = []
  const done = new Map<string, number | null>()
  child.on('message', (told: Told) => {
    if ('done' in told) done.set(told.done, told.balance)
    else if (begun.push(told.begun) === moves) child.kill('SIGKILL')
  })
  expect(await ended).toEqual([null, 'SIGKILL'])
  return { begun, done }
}

async function judge(store: RedisStore, clientId: string, { begun, done }: Life): Promise<{ recorded: number }> {
  const all: TransactionRecord[] = []
  for (let after: string | null | undefined; after !== null; ) {
    const page = await store.listTransactions(clientId, { order: 'oldest', limit: 100, ...(after ? { after } : {}) })
    all.push(...page.transactions)
    after = page.next
  }
  const sum = all.reduce((total, { type, amount }) => total + (type === 'topup' ? amount : -amount), START)
  expect((await store.getClient(clientId))?.balance).toBe(sum)
  const recorded = new Set(all.map(({ id }) => id))
  expect(recorded.size).toBe(all.length)
  for (const id of done.keys()) expect(recorded).toContain(id)
  return { recorded: begun.filter((id) => recorded.has(id)).length }
}

async function killRepeatedly(times: number, redis: Redis | Cluster, where: Pick<Orders, 'url' | 'cluster'>) {
  const store = new RedisStore(redis)
  let unanswered = 0
  let left = times
  const lane = async () => {
    while (left > 0) {
      left -= 1
      const moves = AT_ONCE + 1 + ((left * 7) % 40)
      const { clientId } = clientOf()
      await store.createClient(clientOf({ clientId, balance: START }))
      const life = await liveAndDie({ ...where, clientId, atOnce: AT_ONCE }, moves)
      // What the process had handed to the kernel arrives after its death.
      const { recorded } = await vi.waitFor(() => judge(store, clientId, life), { timeout: 20_000 })
      unanswered += recorded - life.done.size
    }
  }
  await Promise.all(Array.from({ length: LANES }, lane))
  // Some were done and never answered: so it was in the middle of them that the processes died.
  expect(unanswered).toBeGreaterThan(0)
}

it('on a single server, 50 times', { timeout: 180_000 }, async () => {
  const url = await freshRedis()
  const redis = new Redis(url)
  await killRepeatedly(50, redis, { url })
  redis.disconnect()
})

it('on a Cluster, 20 times', { timeout: 180_000 }, async () => {
  const cluster = await sharedCluster()
  const redis = new Cluster(cluster)
  await killRepeatedly(20, redis, { cluster })
  redis.disconnect()
})
