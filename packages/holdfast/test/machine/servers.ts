/** Servers that run the scripts, and what stands in them. */
import { Redis } from 'ioredis'
import { expect } from 'vitest'
import { Valkey } from '../../../../sim/valkey.js'
import { freshRedis } from '../../../../test/servers.js'
import type { Stock } from '../../src/machine/index.js'
import type { Place, ScriptRunner } from '../../src/redis/index.js'
import { stockFields } from '../../src/sequencer/stock.js'
import { script } from '../redis/support/scripts.js'
import { runnerOn } from '../sequencer/support/runner.js'

export interface Server {
  runner: ScriptRunner
  close(): void
}

export const servers: Record<string, () => Promise<Server>> = {
  Redis: async () => {
    const redis = new Redis(await freshRedis())
    return { runner: runnerOn(redis), close: () => redis.disconnect() }
  },
  'Valkey in WebAssembly': async () => {
    const valkey = await Valkey.start({ now: () => Date.now(), random: (bytes) => bytes.fill(1) })
    const runner: ScriptRunner = { run: async (script, keys, args) => valkey.run(script, keys, args) }
    return { runner, close: () => {} }
  },
}

export function placeOf(id: string, isSale: boolean): Place {
  const tag = 'hf:test:{1}'
  return {
    tenant: 'test',
    ref: id,
    shard: 1,
    walletKey: `${tag}:wallet:v1:${id}`,
    isSale,
    stockKey: `${tag}:stock:v1:${id}`,
    leaseKey: `${tag}:lease:v1:${id}`,
    agendaKey: `${tag}:agenda:v1:1`,
    agendaName: `test:${id}`,
  }
}

const readAll = script('read-all', 'keys 1 | resend safe', "return redis.call('HGETALL', KEYS[1])")

export async function expectStock(runner: ScriptRunner, place: Place, stock: Stock, epoch: number): Promise<void> {
  const fields = ((await runner.run(readAll, [place.stockKey], [])) as Buffer[]).map(String)
  expect(pairs(fields)).toEqual(pairs([...[...stockFields(stock)].flat(), 'epoch', `${epoch}`]))
}

const pairs = (flat: readonly string[]): string[] =>
  flat.flatMap((word, at) => (at % 2 === 0 ? [`${word} ${flat[at + 1]}`] : [])).sort()
