import { randomInt } from 'node:crypto'
import { Primitives } from 'holdfast/primitives'
import { Redis } from 'ioredis'
import type { Plan } from '../plan.js'

/** One way to do a work, with servers and keys of its own. */
export interface Contender {
  readonly title: string
  /** Of how many operations a call consists, where a single one is too short to be measured. */
  readonly perCall: number
  call(): Promise<void>
  /** What is not as callers were told; null: all is. */
  check(): Promise<string | null>
  close(): Promise<void>
}

/** Something that Holdfast and others do. */
export interface Work {
  readonly name: string
  readonly title: string
  /** What is compared, and what of it is not the same. */
  readonly remarks: string
  /** False: nobody waits for anything, so there is but one caller. */
  readonly isShared: boolean
  /** The first is Holdfast. Each gets the URL of a database that nobody else uses. */
  open(allot: () => string, plan: Plan): Promise<Contender[]>
}

export const DAY_MS = 86_400_000
/** Enough that nobody is refused: what is measured is work, not refusals. */
export const PLENTY = 1_000_000_000

export const connect = (redis: string): Promise<Primitives> =>
  Primitives.connect({ redis, secret: 'a secret of the benchmark' })

/** Any of so many users; and all of them. */
export function names(count: number): (() => string) & { readonly all: readonly string[] } {
  const all = Array.from({ length: count }, (_, number) => `user-${number}`)
  return Object.assign(() => all[randomInt(count)] as string, { all })
}

/** The sum of all counters in a database, or of some. */
export async function sumOf(url: string, match = '*'): Promise<number> {
  const redis = new Redis(url)
  let sum = 0
  for await (const keys of redis.scanStream({ match, count: 1_000 })) {
    if (keys.length === 0) continue
    for (const value of await redis.mget(keys)) sum += Number(value)
  }
  redis.disconnect()
  return sum
}

export const unlessEqual = (told: number, made: number): string | null =>
  told > 0 && told === made ? null : `${told} told, ${made} made`
