import { beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../test/servers.js'
import { type HoldfastProcess, holdfast, run } from './support/holdfast.js'
import { unlessStalled } from './support/stalls.js'

let env: Record<string, string>
beforeAll(async () => {
  env = { REDIS_URL: await freshRedis(), DATABASE_URL: await freshDatabase() }
})

const create = async (...flags: string[]) => {
  const { code, stdout, stderr } = await run(['keys', 'create', '--json', ...flags], { env })
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout) as { key: string; id: string; expiresAt: number; createdAt: number }
}

const list = async (...flags: string[]) => {
  const { stdout } = await run(['keys', 'list', '--json', ...flags], { env })
  return JSON.parse(stdout) as { id: string; tenant: string; revokedAt: number | null; lastUsedAt: number | null }[]
}

const status = async (url: string, key: string, path = '/v1/wallets') =>
  (await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${key}` } })).status

describe('keys', () => {
  it('are made, shown once, listed without their secrets, and revoked', async () => {
    const made = await run(['keys', 'create', '--tenant', 'shop', '--name', 'Till 1', '--scopes', 'read,spend'], {
      env,
    })
    expect([made.code, made.stderr]).toEqual([0, ''])
    const [, id = '', secret = ''] = /^ {2}hf_([A-Za-z0-9]{12})_([A-Za-z0-9]{48})$/m.exec(made.stdout) ?? []
    expect(id).not.toBe('')
    expect(made.stdout).toContain('shown this once')

    const listed = await run(['keys', 'list'], { env })
    const [headings, row] = listed.stdout.split('\n').filter((line) => /^id |Till 1/.test(line)) as [string, string]
    expect(headings).toMatch(/^id +tenant +name +scopes +wallets +made +last used +state$/)
    expect(row).toMatch(new RegExp(`^${id} +shop +Till 1 +read,spend +all +\\d{4}-.* +never +good$`))
    expect(listed.stdout).not.toContain(secret)

    const revoked = await run(['keys', 'revoke', id], { env })
    expect([revoked.code, revoked.stdout]).toEqual([0, expect.stringContaining(`The key ${id} (Till 1) is revoked`)])
    expect((await run(['keys', 'list', '--tenant', 'shop'], { env })).stdout).toMatch(/ +revoked \d{4}-/)
    expect((await list()).map((one) => one.tenant)).toContain('shop')
    expect(await list('--tenant', 'nobody')).toEqual([])
  })

  it('have limits, a prefix and an end', async () => {
    const flags = [
      '--wallet-prefix',
      'eu-',
      '--expires-in',
      '90d',
      '--rate',
      '5',
      '--concurrent',
      '2',
      '--body-bytes',
      '512',
    ]
    const key = await create(...flags)
    expect(key).toMatchObject({ walletPrefix: 'eu-', rateMax: 5, concurrentMax: 2, bodyMaxBytes: 512 })
    // Each of the two is rounded to milliseconds by itself.
    expect(Math.abs(key.expiresAt - key.createdAt - 90 * 86_400_000)).toBeLessThanOrEqual(1)
  })

  it.each([
    [
      ['create', '--scopes', 'read,write'],
      '--scopes: expected some of read, spend, fund, admin, flags, sell, buy, got "read,write"',
      2,
    ],
    [['create', '--tenant', 'A b'], '--tenant: expected 1 to 64 of a-z', 2],
    [['create', '--expires-in', '90'], '--expires-in: expected a number with ms, s, m, h or d', 2],
    [['revoke'], "missing required argument 'id'", 2],
    [['revoke', 'nothing'], 'id: expected that of a key, got one that no key has', 1],
    [['destroy'], "unknown command 'destroy'", 2],
  ])('are not touched by a mistake: %j', async (args, message, code) => {
    const ended = await run(['keys', ...args], { env })
    expect([ended.code, ended.stdout]).toEqual([code, ''])
    expect(ended.stderr).toContain(message)
    expect(ended.stderr).not.toMatch(/^\s+at /m)
  })

  it('need a database that is there and up to date', async () => {
    const away = await run(['keys', 'list'], { env: { DATABASE_URL: 'postgres://alice:hunter2@127.0.0.1:1/x' } })
    expect(away.code).toBe(1)
    expect(away.stderr).toMatch(/^holdfast: DATABASE_URL: Postgres at 127\.0\.0\.1:1 /m)
    expect(away.stderr).not.toContain('hunter2')
  })
})

describe('two servers', () => {
  it('both turn a revoked key away within a second, and note when keys were used', async () => {
    const keys: string[] = []
    const servers: HoldfastProcess[] = []
    for (let n = 0; n < 2; n += 1) servers.push(await holdfast(['serve', '--port', '0'], { env }))
    const urls = await Promise.all(servers.map((server) => server.ready()))
    const used: string[] = []
    await unlessStalled(async () => {
      const { key, id } = await create()
      keys.push(key)
      used.push(id)
      for (const url of urls) expect(await status(url, key)).toBe(200)

      // Busy all the while, so that it is known everywhere when it is revoked.
      const lastTakenAt = urls.map(async (url) => {
        for (let takenAt = 0; ; ) {
          const askedAt = Date.now()
          if ((await status(url, key)) === 401) return takenAt
          takenAt = askedAt
        }
      })
      const { stdout } = await run(['keys', 'revoke', id, '--json'], { env })
      const { revokedAt } = JSON.parse(stdout) as { revokedAt: number }
      for (const takenAt of await Promise.all(lastTakenAt)) expect(takenAt - revokedAt).toBeLessThan(1_000)
      for (const url of urls) expect(await status(url, key)).toBe(401)
    })

    for (const server of servers) expect((await server.stop()).code).toBe(0)
    const noted = (await list()).filter(({ id }) => used.includes(id))
    expect(noted).toHaveLength(used.length)
    for (const { lastUsedAt } of noted) expect(lastUsedAt).toBeGreaterThan(0)
    for (const { stdout, stderr } of servers) {
      for (const key of keys) expect(stdout + stderr).not.toContain(key.slice(16))
    }
  })

  it('share the work: what one does the other sees, and a stop answers what is in flight', async () => {
    const { key } = await create()
    const first = await holdfast(['serve', '--port', '0'], { env })
    const second = await holdfast(['serve', '--port', '0'], { env })
    const [one, two] = [await first.ready(), await second.ready()]
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    await fetch(`${one}/v1/wallets/busy`, { method: 'PUT', headers, body: '{"currency":"usd"}' })

    let acknowledged = 0
    let stopping = false
    const credit = async (url: string, key: string) => {
      const asked = { method: 'POST', headers: { ...headers, 'idempotency-key': key }, body: '{"amount":1}' }
      const response = await fetch(`${url}/v1/wallets/busy/credits`, asked)
      expect([key, response.status]).toEqual([key, 200])
      await response.json()
      acknowledged += 1
    }
    /** Whoever finds a server gone goes to the other with the same key, as behind a balancer. */
    const worker = async (name: string, url: string) => {
      for (let n = 0; !stopping; n += 1) {
        await credit(url, `${name}-${n}`).catch(async (error: Error) => {
          if (!(error instanceof TypeError)) throw error
          await credit(two, `${name}-${n}`)
        })
      }
    }
    const workers = Array.from({ length: 16 }, (_, n) => worker(`w${n}`, n % 2 === 0 ? one : two))
    await expect.poll(() => acknowledged, { timeout: 20_000 }).toBeGreaterThan(200)
    expect((await first.stop()).code).toBe(0)
    const before = acknowledged
    await expect.poll(() => acknowledged, { timeout: 20_000 }).toBeGreaterThan(before + 50)
    stopping = true
    await Promise.all(workers)
    const wallet = (await (await fetch(`${two}/v1/wallets/busy`, { headers })).json()) as { available: number }
    expect(wallet.available).toBe(acknowledged)
    expect((await second.stop()).code).toBe(0)
  })
})
