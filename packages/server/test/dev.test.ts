import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { curl } from '../../../test/curl.js'
import { freshDatabase, freshRedis } from '../../../test/servers.js'
import { holdfast, run } from './support/holdfast.js'

/** What it warns of on a machine that stands still for long, and then goes on: one that it asks again and again did not answer in time. */
const ASKED = 'redis_away|decide_failed|load_failed|events_not_read|webhooks_not_claimed|sale_schedules_not_read'
const IMPATIENT = new RegExp(`^{"level":"warn",.*"reason":"[^"]*(no answer|timeout)[^"]*","event":"(${ASKED})"}$`)

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast dev '))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

describe('dev', () => {
  it('starts everything, tells where and what to try first, and leaves nothing running', async () => {
    const dev = await holdfast(['dev', '--port', '0'], { cwd: folder })
    const url = await dev.ready()
    expect(dev.stdout).toContain(`  docs      ${url}/docs\n`)
    expect(dev.stdout).toContain(`  data      ${join(folder, '.holdfast')}\n`)
    expect(dev.stdout).toMatch(/^ready in \d+\.\d s$/m)
    const [, key] = /^ {2}API key {3}(hf_\w+)$/m.exec(dev.stdout) ?? []
    const [first = ''] = /^ {2}curl .*$/m.exec(dev.stdout) ?? []
    expect(first).toContain(`Bearer ${key}`)
    // As a person would: by copying it.
    expect(JSON.parse(await curl(first.trim()))).toMatchObject({ id: 'alice', currency: 'usd', available: 0 })
    const ports = [...dev.stdout.matchAll(/private, 127\.0\.0\.1:(\d+)/g)].map(([, port]) => Number(port))
    expect(ports).toHaveLength(2)

    const ended = await dev.stop()
    const complaints = ended.stderr.split('\n').filter((line) => line !== '' && !IMPATIENT.test(line))
    expect([ended.code, complaints]).toEqual([0, []])
    for (const port of ports) await expect(fetch(`http://127.0.0.1:${port}`)).rejects.toThrow()
  })

  it('keeps its data between runs', async () => {
    const start = async () => {
      const dev = await holdfast(['dev', '--port', '0', '--json', '--log-level', 'info'], { cwd: folder })
      await dev.ready()
      expect(JSON.parse(dev.stdout)).toMatchObject({ event: 'ready', dataDir: join(folder, '.holdfast') })
      return (await dev.stop()).stderr
    }
    expect(await start()).toContain('"event":"postgres_migrated"')
    const second = await start()
    expect(second).toContain('"event":"ready"')
    expect(second).not.toContain('"event":"postgres_migrated"')
  })

  it('has one key for good, kept for its owner alone; another once that is of no use', async () => {
    const keyOf = async () => {
      const dev = await holdfast(['dev', '--port', '0', '--json'], { cwd: folder })
      const url = await dev.ready()
      const { key } = JSON.parse(dev.stdout) as { key: string }
      const { status } = await fetch(`${url}/v1/wallets`, { headers: { authorization: `Bearer ${key}` } })
      expect(status).toBe(200)
      await dev.stop()
      return key
    }
    const file = join(folder, '.holdfast/api-key')
    const first = await keyOf()
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, 'utf8')).toBe(`${first}\n`)
    expect(await keyOf()).toBe(first)
    writeFileSync(file, `${first.slice(0, -1)}x\n`, { mode: 0o644 })
    const second = await keyOf()
    expect(second).not.toBe(first)
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  it('takes each of REDIS_URL and DATABASE_URL instead of starting its own', async () => {
    const databaseUrl = await freshDatabase()
    const both = await holdfast(['dev', '--port', '0'], {
      cwd: folder,
      env: { REDIS_URL: await freshRedis(), DATABASE_URL: databaseUrl },
    })
    const url = await both.ready()
    expect(both.stdout).not.toContain('private')
    expect(both.stdout).not.toContain('data ')
    expect((await fetch(`${url}/health/ready`)).status).toBe(200)
    await both.stop()

    const own = await holdfast(['dev', '--port', '0'], { cwd: folder, env: { DATABASE_URL: databaseUrl } })
    await own.ready()
    expect(own.stdout).toMatch(/Redis +private, /)
    expect(own.stdout).toContain(`Postgres  ${new URL(databaseUrl).host}`)
    await own.stop()
  })

  it('says that it runs already, and harms neither', async () => {
    const first = await holdfast(['dev', '--port', '0'], { cwd: folder })
    const url = await first.ready()
    const second = await run(['dev', '--port', '0'], { cwd: folder })
    expect(second.code).toBe(1)
    expect(second.stderr).toMatch(/^holdfast: .*already/m)
    expect((await fetch(`${url}/health/ready`)).status).toBe(200)
    expect(await first.stop()).toMatchObject({ code: 0 })
  })

  it('ends with a clear message, and its private servers with it, when REDIS_URL is broken', async () => {
    const ended = await run(['dev', '--port', '0'], {
      cwd: folder,
      env: { REDIS_URL: 'redis://alice:hunter2@127.0.0.1:1' },
    })
    expect(ended.code).toBe(1)
    expect(ended.durationMs).toBeLessThan(30_000)
    expect(ended.stderr).toMatch(/^holdfast: REDIS_URL: Redis at 127\.0\.0\.1:1 /m)
    expect(ended.stderr).not.toContain('hunter2')
    const again = await holdfast(['dev', '--port', '0'], { cwd: folder })
    await again.ready()
    // Before its folder is removed under it.
    await again.stop()
  })

  it('migrates a database that it is given', async () => {
    const url = await freshDatabase()
    const client = new pg.Client(url)
    await client.connect()
    await client.query('DROP SCHEMA holdfast CASCADE')
    const dev = await holdfast(['dev', '--port', '0'], {
      cwd: folder,
      env: { REDIS_URL: await freshRedis(), DATABASE_URL: url },
    })
    await dev.ready()
    expect((await client.query('SELECT count(*)::int AS settings FROM holdfast.settings')).rows).toEqual([
      { settings: 1 },
    ])
    await client.end()
    await dev.stop()
  })
})
