import { afterAll, expect, it, vi } from 'vitest'
import type { Engine } from '../../src/engine/index.js'
import { PostgresJournal } from '../../src/journal/index.js'
import { command } from '../../src/machine/index.js'
import { Keys } from '../../src/redis/index.js'
import { until } from '../api/support/paths.js'
import { load, run, verdictsOf } from '../journal/journals.js'
import { type Decided, Engines, leaveBehind, openWallet, ownServers } from './support/engines.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 5), shards: 1 })
const engines = new Engines(keys)
const { redisUrl, redis, postgres, journal } = await ownServers()

afterAll(() => engines.close())

const hold = { kind: 'hold', amount: 30, ttlMs: 60_000 } as const
const bad = { kind: 'credit', key: 'bad', amount: 1, metadata: '\0' } as const

/** Something happens before a raise. */
class Loading extends PostgresJournal {
  beforeRaise: (() => Promise<void>) | null = null

  override async raise(...asked: Parameters<PostgresJournal['raise']>): ReturnType<PostgresJournal['raise']> {
    const before = this.beforeRaise
    this.beforeRaise = null
    await before?.()
    return super.raise(...asked)
  }
}

/** A wallet with 100 in it, and another process that has decided this much in Redis and died before it appended any of it. */
async function abandon({ id, journal: own }: { id: string; journal?: PostgresJournal }, ...decided: Decided[]) {
  const place = keys.of(id)
  await openWallet(journal, place, id)
  const log = vi.fn()
  const { engine, sequencer } = engines.start({ redisUrl, postgres, telemetry: { log }, ...(own && { journal: own }) })
  await engine.submit(place, command({ kind: 'credit', key: 'in', amount: 100 }), { memory: true })
  await until(() => engine.load.backlog === 0)
  await leaveBehind(sequencer, place, decided)
  const credit = (key: string) =>
    engine.submit(place, command({ kind: 'credit', key, amount: 5 }), { memory: false, timeoutMs: 20_000 })
  const install = vi.spyOn(sequencer, 'install')
  const loads = () => install.mock.calls.length
  const inRedis = () => sequencer.look(place, 0, 'test', 0)
  return { place, credit, inRedis, loads, log, sequencer }
}

it('decides nothing again that the journal has, though what it rested on in Redis could never be stored', async () => {
  const { place, credit, inRedis, loads } = await abandon(
    { id: 'twice' },
    { command: command(bad), memory: false },
    { command: command({ ...hold, key: 'h' }), memory: true },
  )
  // Another life of the wallet, which Redis has forgotten since, made the hold durable.
  const other = await load(journal, place.ref)
  const made = other.make({ ...hold, key: 'h' })
  expect(await verdictsOf(journal, other.file(made))).toEqual(['appended'])

  await credit('next')
  // Decided twice, it would be refused by the journal, and all that rests on it: then the wallet is loaded once more.
  expect(loads()).toBe(1)
  expect(await inRedis()).toMatchObject({ why: 'trusted', core: { available: 75, reserved: 30, open: 1 } })
  expect(await journal.read([place.ref])).toMatchObject([{ available: 75, reserved: 30 }])
})

it('decides nothing again that came into the journal while it was being loaded', async () => {
  const loading = new Loading(postgres)
  const { place, credit, inRedis, loads, sequencer } = await abandon({ id: 'meanwhile', journal: loading })
  // The state in Redis is one of the past.
  const other = await load(journal, place.ref)
  expect(await verdictsOf(journal, other.file(other.make({ kind: 'credit', key: 'elsewhere', amount: 1 })))).toEqual([
    'appended',
  ])
  loading.beforeRaise = async () => {
    // Between look and raise: acknowledged by this Redis, which does not know; and made durable by another, which has the same wallet.
    await leaveBehind(sequencer, place, [{ command: command({ ...hold, key: 'h' }), memory: true }])
    expect(await verdictsOf(journal, other.file(other.make({ ...hold, key: 'h' })))).toEqual(['appended'])
  }
  await credit('next')
  expect(loads()).toBe(1)
  expect(await inRedis()).toMatchObject({ why: 'trusted', core: { available: 76, reserved: 30, open: 1 } })
})

it('answers a repeated key with its first answer, however Redis came by the wallet', async () => {
  const place = keys.of('repeated')
  await openWallet(journal, place, 'repeated')
  const { engine, sequencer } = engines.start({ redisUrl, postgres })
  const credit = (n: number) =>
    engine.submit(place, command({ kind: 'credit', key: `c${n}`, amount: 100 }), { memory: true, timeoutMs: 20_000 })
  for (let n = 0; n < 20; n += 1) await credit(n)
  await until(() => engine.load.backlog === 0)
  const forgotten = {
    'loaded anew': async () => sequencer.distrust(place, (await sequencer.look(place, 0, 'test', 0)).epoch),
    'left, or was flushed': () => redis.del(place.walletKey),
  }
  for (const [why, forget] of Object.entries(forgotten)) {
    await forget()
    for (let n = 4; n < 20; n += 1) {
      expect(await credit(n), why).toMatchObject({ replayed: true, durability: 'ledger', entry: { seq: n + 1 } })
    }
    expect((await sequencer.look(place, 0, 'test', 0)).core, why).toMatchObject({ available: 2_000, seq: 20 })
  }
})

it.each([false, true])('knows of what it was loaded with that the journal must have it (memory: %s)', async (told) => {
  const place = keys.of(`put back ${told}`)
  await openWallet(journal, place, `put back ${told}`)
  const credit = (engine: Engine, key: string, memory = true) =>
    engine.submit(place, command({ kind: 'credit', key, amount: 100 }), { memory, timeoutMs: 20_000 })
  const { engine } = engines.start({ redisUrl, postgres })
  await credit(engine, 'first')
  await credit(engine, 'second')
  await until(() => engine.load.backlog === 0)
  // Nobody has written since it came back into Redis.
  await redis.del(place.walletKey)
  expect(await credit(engine, 'second')).toMatchObject({ replayed: true })
  await engine.close()
  // A copy of Postgres from before the second, and nobody left who remembers it: but for the wallet in Redis.
  await redis.del(keys.witnesses)
  const [first] = await journal.entries(place.ref, 1, 1)
  await run(
    postgres,
    `SET LOCAL session_replication_role = replica; DELETE FROM entries WHERE wallet = '${place.ref}' AND seq = 2;
     UPDATE wallets SET seq = 1, available = 100, head = '\\x${first?.hash}' WHERE ref = '${place.ref}'`,
  )
  const { engine: later } = engines.start({ redisUrl, postgres })
  const third = credit(later, 'third', told)
  // From memory yes was said before the journal is asked, and nobody waits for it: everybody must stop all the same.
  if (told) expect(await third).toMatchObject({ durability: 'memory' })
  else await expect(third).rejects.toMatchObject({ code: 'reconcile_required' })
  await expect.poll(async () => (await journal.prove([])).stopped, { timeout: 20_000 }).not.toBeNull()
  // Were anything still on its way there, everybody would be stopped once more.
  await later.close()
  await run(postgres, `UPDATE settings SET stopped_at = NULL, stopped_because = NULL`)
})

it('is not kept from working by what was acknowledged and can never be stored: that is lost, and said to be', async () => {
  const { place, credit, inRedis, log } = await abandon(
    { id: 'poisoned' },
    { command: command(bad), memory: true },
    { command: command({ ...hold, key: 'h' }), memory: true },
  )
  await credit('next')
  expect(await inRedis()).toMatchObject({ why: 'trusted', core: { available: 75, reserved: 30 } })
  expect(await journal.read([place.ref])).toMatchObject([{ available: 75, reserved: 30 }])
  const lost = log.mock.calls.filter(([, event]) => event === 'memory_operations_lost')
  expect(lost).toEqual([['error', 'memory_operations_lost', { count: 1, codes: ['not_storable'] }]])
})
