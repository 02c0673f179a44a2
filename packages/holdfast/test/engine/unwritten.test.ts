import pg from 'pg'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PostgresJournal } from '../../src/journal/index.js'
import { command } from '../../src/machine/index.js'
import { Keys } from '../../src/redis/index.js'
import type { Telemetry } from '../../src/telemetry/index.js'
import { until } from '../api/support/paths.js'
import { run } from '../journal/journals.js'
import { Engines, openWallet, ownServers } from './support/engines.js'

/** A Postgres that answers every question and takes nothing: its disk is full, say. */

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 7), shards: 1 })
const engines = new Engines(keys)
const { redisUrl, postgres, url } = await ownServers()

/** Counts how often it was asked how it stands: that is what probes do. */
class Probed extends PostgresJournal {
  proofs = 0

  override async prove(...asked: Parameters<PostgresJournal['prove']>): ReturnType<PostgresJournal['prove']> {
    const standing = await super.prove(...asked)
    this.proofs += 1
    return standing
  }
}

const journal = new Probed(postgres)
const heard: string[] = []
const telemetry = { log: (_: string, event: string) => void heard.push(event) }
const start = (heardBy: Telemetry = telemetry) =>
  engines.start({
    redisUrl,
    postgres,
    journal,
    telemetry: heardBy,
    options: { sweepEveryMs: 600_000, timeoutMs: 20_000 },
  })

const credit = (key: string) => command({ kind: 'credit', key, amount: 1 })
const tooMuch = (key: string) => command({ kind: 'debit', key, amount: 1_000 })
const seqOf = async (id: string) => (await journal.read([keys.ref(id)]))[0]?.seq
const fill = (table: string, event: string) =>
  run(postgres, `CREATE TRIGGER no_room BEFORE ${event} ON ${table} FOR EACH STATEMENT EXECUTE FUNCTION no_room()`)
const empty = (table: string) => run(postgres, `DROP TRIGGER IF EXISTS no_room ON ${table}`)

const define = (body: string) =>
  run(postgres, `CREATE OR REPLACE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body}; END $$`)

const keeper = new pg.Client(url)
await keeper.connect()
afterAll(() => keeper.end())
beforeEach(async () => {
  heard.length = 0
  await define(`RAISE EXCEPTION 'No space left on device' USING ERRCODE = '53100'`)
})
afterEach(async () => {
  await keeper.query('ROLLBACK')
  await empty('entries')
  await empty('wallets')
  await engines.close()
})

async function opened(id: string) {
  const place = keys.of(id)
  await openWallet(journal, place, id)
  return place
}

describe('a Postgres that can be read and not written', () => {
  it('is away until it has been written to: what is only read, by callers or by a probe, says nothing', async () => {
    const { engine } = start()
    const place = await opened('ledger')
    const other = await opened('memory')
    await engine.submit(place, credit('in'), { memory: false })
    await engine.submit(other, credit('in'), { memory: true })
    await until(() => engine.load.backlog === 0)
    await fill('entries', 'INSERT')
    const waits = engine.submit(place, credit('waits'), { memory: false })
    await until(() => !engine.health.postgres)
    heard.length = 0
    const proofs = journal.proofs
    for (let n = 0; journal.proofs < proofs + 3; n += 1) {
      const refused = engine.submit(place, credit(`late ${n}`), { memory: false })
      await expect(refused).rejects.toMatchObject({ code: 'unavailable' })
      // Confirmed by a read.
      const no = engine.submit(other, tooMuch(`no ${n}`), { memory: true })
      await expect(no).rejects.toMatchObject({ code: 'insufficient_funds' })
    }
    expect(heard).not.toContain('postgres_back')
    expect(engine.load.backlog).toBe(1)

    await empty('entries')
    expect(await waits).toMatchObject({ durability: 'ledger' })
    await until(() => engine.health.postgres)
    // Nothing that was given up is committed later.
    await engine.submit(place, credit('next'), { memory: false })
    expect(await seqOf('ledger')).toBe(3)
  })

  it('goes on from memory with what may be told from there, and with nothing that the journal has to tell', async () => {
    const { engine } = start()
    const place = await opened('both')
    const { entry } = await engine.submit(place, credit('in'), { memory: true })
    await until(() => engine.load.backlog === 0)
    await fill('entries', 'INSERT')
    expect(await engine.submit(place, credit('told'), { memory: true })).toMatchObject({ durability: 'memory' })
    await until(() => !engine.health.postgres)
    expect(await engine.submit(place, credit('told too'), { memory: true })).toMatchObject({ durability: 'memory' })
    const again = engine.submit(place, credit('perhaps decided'), { memory: true, retry: true })
    await expect(again).rejects.toMatchObject({ code: 'unavailable' })
    const refund = command({ kind: 'refund', key: 'refund', of: entry?.seq as number, amount: 1 })
    await expect(engine.submit(place, refund, { memory: true })).rejects.toMatchObject({ code: 'unavailable' })
    await empty('entries')
    await until(() => engine.load.backlog === 0)
    expect(await seqOf('both')).toBe(3)
  })

  it('is back when it can be written, though all that waits is behind a row that somebody keeps locked', async () => {
    let gaps = 0
    const count = (_: string, labels?: Record<string, string>) => {
      if (labels?.verdict === 'gap') gaps += 1
    }
    const { engine } = start({ ...telemetry, count })
    const [locked, cold] = [await opened('locked'), await opened('cold')]
    await engine.submit(locked, credit('in'), { memory: true })
    await until(() => engine.load.backlog === 0)
    await keeper.query('BEGIN')
    await keeper.query('SELECT FROM holdfast.wallets WHERE ref = $1 FOR UPDATE', [locked.ref])
    await engine.submit(locked, credit('waits'), { memory: true })
    await until(() => gaps > 0)
    await fill('wallets', 'UPDATE')
    await expect(engine.submit(cold, credit('a'), { memory: false })).rejects.toMatchObject({ code: 'unavailable' })
    expect(heard).toContain('postgres_away')
    await define('RETURN NULL')
    await until(() => engine.submit(cold, credit('b'), { memory: false }).then(Boolean, () => false))
    expect([engine.load.backlog, await seqOf('locked')]).toEqual([1, 1])
    await keeper.query('COMMIT')
    await until(() => engine.load.backlog === 0)
  })

  it.each([false, true])(
    'is found out by who has to load a wallet, and nobody waits for that (memory: %s)',
    async (memory) => {
      const { engine } = start()
      const place = await opened(`cold ${memory}`)
      await fill('wallets', 'UPDATE')
      await expect(engine.submit(place, credit('a'), { memory })).rejects.toMatchObject({ code: 'unavailable' })
      await empty('wallets')
      // Nothing waits to be written: whoever comes next finds out.
      await until(() => engine.submit(place, credit('b'), { memory }).then(Boolean, () => false))
      await until(async () => (await seqOf(`cold ${memory}`)) === 1)
    },
  )
})
