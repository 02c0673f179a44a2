import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Holdfast } from 'holdfast'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { freshDatabase, freshRedis } from '../../../test/servers.js'
import { holdfast, run } from './support/holdfast.js'

let env: { REDIS_URL: string; DATABASE_URL: string }
let folder: string

beforeEach(async () => {
  env = { REDIS_URL: await freshRedis(), DATABASE_URL: await freshDatabase() }
  folder = mkdtempSync(join(tmpdir(), 'holdfast-reconcile-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

async function inDatabase(sql: string): Promise<void> {
  const client = new pg.Client(env.DATABASE_URL)
  await client.connect()
  await client.query(sql)
  await client.end()
}

/** Two debits of each wallet that callers were told of, and that Postgres has no more. */
async function loseTwo(ids: readonly string[] = ['user_42']): Promise<void> {
  const hf = await Holdfast.connect({ redis: env.REDIS_URL, postgres: env.DATABASE_URL })
  const wallets = ids.map((id) => hf.wallet(id))
  await Promise.all(
    wallets.map(async (wallet) => {
      await wallet.open({ currency: 'usd' })
      await wallet.credit(1_000, { key: 'in' })
    }),
  )
  await inDatabase('CREATE TABLE kept AS SELECT * FROM holdfast.wallets')
  await Promise.all(
    wallets.map(async (wallet) => {
      await wallet.debit(300, { key: 'order-1' })
      await wallet.debit(200, { key: 'order-2' })
    }),
  )
  await hf.close()
  await inDatabase(`BEGIN; SET LOCAL session_replication_role = replica;
    DELETE FROM holdfast.entries WHERE seq > 1; DELETE FROM holdfast.wallets; INSERT INTO holdfast.wallets SELECT * FROM kept; COMMIT`)
}

describe('holdfast reconcile', () => {
  it('finds nothing to do where nothing is missing', async () => {
    expect(await run(['reconcile'], { env })).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('nothing to do'),
    })
    const { code, stdout } = await run(['reconcile', '--json', '--yes'], { env, cwd: folder })
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ needed: false, done: false, export: null })
    expect(readdirSync(folder)).toEqual([])
  })

  it('shows what is lost and changes nothing without --yes; with it, keeps the entries in a file and goes on', async () => {
    await loseTwo()
    for (const args of [[], ['--dry-run'], ['--dry-run', '--yes']]) {
      const looked = await run(['reconcile', ...args], { env, cwd: folder })
      expect(looked.code).toBe(1)
      expect(looked.stdout).toMatch(/^TENANT +WALLET +JOURNAL +REDIS +ENTRIES +FORGOTTEN +AVAILABLE +WAS$/m)
      expect(looked.stdout).toMatch(/^default +user_42 +1 +3 +2 +0 +1,000 +500$/m)
      expect(looked.stdout).toContain('Nothing was changed. Run it again with --yes')
    }
    expect(readdirSync(folder)).toEqual([])
    const done = await run(['reconcile', '--yes'], { env, cwd: folder })
    expect(done).toMatchObject({ code: 0, stderr: '' })
    expect(done.stdout).toContain('Postgres has won: everything goes on from what it has.')
    const [file] = readdirSync(folder)
    expect(done.stdout).toContain(`They are in ${file}`)
    const lines = readFileSync(join(folder, file as string), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    const told = { tenant: 'default', wallet: 'user_42', kind: 'debit', acknowledged: 'yes', decidedAgain: false }
    expect(lines).toMatchObject([
      { ...told, seq: 2, key: 'order-1', amount: 300, availableDelta: -300, available: 700, hash: expect.any(String) },
      { ...told, seq: 3, key: 'order-2', amount: 200, availableDelta: -200, available: 500, prev: lines[0].hash },
    ])
    expect(await run(['reconcile', '--yes'], { env, cwd: folder })).toMatchObject({ code: 0 })
    expect(readdirSync(folder)).toHaveLength(1)
  })

  it('keeps all that is lost in files, killed in the middle and run in two shells at once', async () => {
    const ids = Array.from({ length: 150 }, (_, n) => `user_${n}`)
    await loseTwo(ids)
    const started = await holdfast(['reconcile', '--yes', '--export', 'killed.jsonl'], { env, cwd: folder })
    await vi.waitFor(() => expect(readdirSync(folder)).toEqual(['killed.jsonl']), { timeout: 20_000, interval: 2 })
    started.signal('SIGKILL')
    await started.ended
    const shells = ['one.jsonl', 'two.jsonl'].map((file) =>
      run(['reconcile', '--yes', '--export', file], { env, cwd: folder }),
    )
    for (const { code, stderr } of await Promise.all(shells)) expect([code, stderr]).toEqual([0, ''])
    // Whoever lets things go on has handed out everything before.
    const lost = new Set(ids.flatMap((id) => [`${id} order-1`, `${id} order-2`]))
    const exported = readdirSync(folder).map((file) => {
      const lines = readFileSync(join(folder, file), 'utf8').split('\n').slice(0, -1)
      return new Set(lines.map((line) => JSON.parse(line)).map(({ wallet, key }) => `${wallet} ${key}`))
    })
    expect(exported.some((entries) => [...lost].every((entry) => entries.has(entry)))).toBe(true)
    const hf = await Holdfast.connect({ redis: env.REDIS_URL, postgres: env.DATABASE_URL })
    const again = await Promise.all(ids.map((id) => hf.wallet(id).debit(300, { key: 'order-1' })))
    for (const receipt of again) expect(receipt).toMatchObject({ replayed: false, available: 700 })
    await hf.close()
  })

  it('does not write over a file, and leaves all as it was then', async () => {
    await loseTwo()
    const refused = await run(['reconcile', '--yes', '--export', '/dev/null'], { env, cwd: folder })
    expect(refused.code).toBe(1)
    expect(refused.stderr).toMatch(/^holdfast: --export: \/dev\/null can't be made: there is such a file already/m)
    const { stdout } = await run(['reconcile', '--json'], { env })
    expect(JSON.parse(stdout)).toMatchObject({ needed: true, done: false, entries: 2, acknowledged: 2 })
  })

  it('is what a server waits for that is not ready', async () => {
    await loseTwo()
    await run(['reconcile', '--dry-run'], { env })
    const server = await holdfast(['serve', '--port', '0'], { env })
    const url = await server.ready()
    const answer = await fetch(`${url}/health/ready`)
    expect(answer.status).toBe(503)
    expect(await answer.json()).toMatchObject({
      code: 'reconcile_required',
      checks: { redis: { status: 'up' }, postgres: { status: 'stopped' } },
    })
    expect(await run(['reconcile', '--yes'], { env, cwd: folder })).toMatchObject({ code: 0 })
    expect((await fetch(`${url}/health/ready`)).status).toBe(200)
    await server.stop()
  })
})

describe('holdfast doctor', () => {
  it('looks at both servers, and says what is wrong with each', async () => {
    const { code, stdout } = await run(['doctor'], { env })
    // The Postgres of tests is one that forgets when the machine crashes.
    expect(code).toBe(1)
    expect(stdout).toMatch(/^SERVER +CHECK +FOUND$/m)
    expect(stdout).toMatch(/^postgres +fsync +danger +fsync is off: a crash/m)
    expect(stdout).toMatch(/^postgres +journal +ok +nothing is known to be missing$/m)
    expect(stdout).toMatch(/^redis +role +ok +a master$/m)
    expect(stdout).toMatch(/^2 dangers, 0 warnings\.$/m)
  })

  it('answers with JSON, and counts a server that is not there as a danger', async () => {
    const away = { ...env, REDIS_URL: 'redis://127.0.0.1:1' }
    const { code, stdout } = await run(['doctor', '--json', '--memory'], { env: away })
    expect(code).toBe(1)
    const { checks, dangers } = JSON.parse(stdout)
    expect(dangers).toBe(3)
    expect(checks).toContainEqual({
      of: 'redis',
      severity: 'danger',
      setting: 'connection',
      text: expect.stringMatching(/^REDIS_URL: Redis at 127\.0\.0\.1:1 /),
    })
  })

  it('finds a journal that waits to be reconciled', async () => {
    await loseTwo()
    await run(['reconcile', '--dry-run'], { env })
    const { stdout } = await run(['doctor'], { env })
    expect(stdout).toMatch(/^postgres +journal +danger +entry \d of wallet .* is missing: run "holdfast reconcile"$/m)
  })
})
