import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type PostgresHandle, startPostgres } from '@holdfast/services'
import { Holdfast } from 'holdfast'
import pg from 'pg'
import { afterEach, expect, it } from 'vitest'
import { freshRedis } from '../../../../test/servers.js'
import { refusal, until } from './support/paths.js'

/** A Postgres whose commits wait for a replica, and that replica, which is promoted in the end. Nothing that anybody was told is lost by it. */

interface Pair {
  readonly primary: PostgresHandle
  readonly standby: PostgresHandle
}

const undo: (() => unknown)[] = []
afterEach(async () => {
  for (const one of undo.splice(0).reverse()) await one()
})

async function startPair(): Promise<Pair> {
  const primary = await startPostgres({ durable: false })
  undo.push(() => primary.stop())
  await primary.kill()
  const folder = join(primary.folder, 'standby')
  mkdirSync(folder)
  execFileSync('cp', ['-a', join(primary.folder, 'data'), folder])
  const signal = join(folder, 'data', 'standby.signal')
  writeFileSync(signal, '')
  chmodSync(signal, 0o666)
  await primary.restart()
  const primary_conninfo = `host=127.0.0.1 port=${primary.port} user=holdfast application_name=standby`
  const standby = await startPostgres({ folder, durable: false, settings: { primary_conninfo } })
  undo.push(() => standby.stop())
  await run(primary, `ALTER SYSTEM SET synchronous_standby_names = 'standby'`)
  await run(primary, 'SELECT pg_reload_conf()')
  // Sessions that begin from now on wait for it.
  const waits = `SELECT WHERE current_setting('synchronous_standby_names') <> ''`
  await until(async () => (await run(primary, waits)).length === 1)
  return { primary, standby }
}

async function run({ url }: PostgresHandle, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url, options: '-c synchronous_commit=local' })
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

async function connect(redis: string, { url }: PostgresHandle): Promise<Holdfast> {
  const hf = await Holdfast.connect({ redis, postgres: url })
  undo.push(() => hf.close())
  return hf
}

const WAITING = `FROM pg_stat_activity WHERE wait_event = 'SyncRep'`
const CUTS = {
  'its session was ended': ({ primary }: Pair) => run(primary, `SELECT pg_terminate_backend(pid) ${WAITING}`),
  'the server was started again': ({ primary }: Pair) => primary.restart(),
}

it.each(Object.entries(CUTS))(
  'does not say yes to what the replica never got, though it can be seen since %s',
  async (_how, cut) => {
    const redis = await freshRedis()
    const pair = await startPair()
    const { primary, standby } = pair
    const wallet = (await connect(redis, primary)).wallet('w')
    await wallet.open({ currency: 'usd' })
    await wallet.credit(100, { key: 'in' })

    await standby.kill()
    const pay = () => refusal(wallet.debit(100, { key: 'pay', timeout: 2_000 }))
    const first = pay()
    await until(async () => (await run(primary, `SELECT ${WAITING}`)).length > 0)
    await cut(pair)
    expect(await run(primary, `SELECT FROM holdfast.entries WHERE key = 'pay'`)).toHaveLength(1)
    expect(await first).toMatchObject({ retryable: true })
    for (let n = 0; n < 3; n += 1) expect(await pay()).toMatchObject({ retryable: true })

    await primary.kill()
    await standby.restart()
    await run(standby, 'SELECT pg_promote()')
    const after = (await connect(redis, standby)).wallet('w')
    expect(await after.debit(100, { key: 'another' })).toMatchObject({ replayed: false })
    expect(await refusal(after.debit(100, { key: 'pay' }))).toMatchObject({ code: 'insufficient_funds' })
  },
  120_000,
)
