import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Grounds, grounds, refOf, tamper, walletKeys } from '../../holdfast/test/audit/support/drift.js'
import { complaintsIn, holdfast, run } from './support/holdfast.js'

const HOUR = 3_600_000

let on: Grounds
let env: Record<string, string>
beforeEach(async () => {
  on = await grounds()
  env = { REDIS_URL: on.options.redis, DATABASE_URL: on.options.postgres }
  const hf = await on.connect()
  for (const id of ['user_42', 'user_43']) {
    await hf.wallet(id).open({ currency: 'usd' })
    await hf.wallet(id).credit(100, { key: 'topup' })
    await hf.wallet(id).hold(30, { key: 'call-17', ttl: HOUR })
  }
})
afterEach(() => on.close())

describe('holdfast audit', () => {
  it('says that nothing was found, and ends with 0', async () => {
    const { code, stdout, stderr } = await run(['audit'], { env })
    expect([code, complaintsIn(stderr)]).toEqual([0, ''])
    expect(stdout).toMatch(/^2 shards, 2 wallets, 4 entries read, 2 wallets in Redis, in \d+\.\d s\nNothing found\.\n$/)
  })

  it('shows what it found in a table, says what it means, and ends with 0 when all of it was repaired', async () => {
    await tamper(on, 'user_42', 'available', 500)
    const ref = await refOf(on.postgres, 'user_42')
    const { code, stdout } = await run(['audit'], { env })
    expect(code).toBe(0)
    const [head, row, empty, meaning] = stdout.split('\n')
    expect(head).toMatch(/^CAUSE +SHARD +TENANT +WALLET +WHAT +EXPECTED +FOUND +DONE$/)
    expect(row?.split(/ {2,}/)).toEqual([
      'hot_state_differs',
      expect.stringMatching(/^[01]$/),
      'default',
      ref,
      'available',
      '70',
      '570',
      'repaired',
    ])
    expect(empty).toBe('')
    expect(meaning).toBe('hot_state_differs: A number of the state in Redis is not what the journal leads to.')
    expect(stdout).toMatch(/\n1 found, 1 repaired, 0 not\.\n$/)
    expect(stdout).not.toMatch(/user_42|call-17/)
    expect((await run(['audit'], { env })).stdout).toContain('Nothing found.')
  })

  it('changes nothing with --no-repair, and ends with 1', async () => {
    await tamper(on, 'user_42', 'available', 500)
    for (let time = 0; time < 2; time += 1) {
      const { code, stdout } = await run(['audit', '--no-repair', '--json'], { env })
      expect(code).toBe(1)
      expect(JSON.parse(stdout)).toMatchObject({
        shards: [0, 1],
        wallets: 2,
        findings: [{ cause: 'hot_state_differs', expected: 70, found: 570, action: 'reported' }],
        counts: { found: 1, repaired: 0, unrepaired: 1 },
      })
    }
  })

  it('ends with 1 when the journal itself is damaged, with --full also where that was verified before', async () => {
    expect((await run(['audit'], { env })).code).toBe(0)
    await on.postgres.query('UPDATE entries SET amount = amount + 1 WHERE seq = 1')
    expect((await run(['audit'], { env })).code).toBe(0)
    const { code, stdout } = await run(['audit', '--full'], { env })
    expect(code).toBe(1)
    expect(stdout.match(/^journal_hash .* entry 1 .* reported$/gm)).toHaveLength(2)
  })

  it('audits one shard, and refuses one that there is not', async () => {
    const { stdout } = await run(['audit', '--shard', '1', '--json'], { env })
    expect(JSON.parse(stdout)).toMatchObject({ shards: [1] })
    const refused = await run(['audit', '--shard', '2'], { env })
    expect([refused.code, refused.stdout]).toEqual([1, ''])
    expect(refused.stderr).toBe('holdfast: shards: expected an integer from 0 to 1, got 2\n')
    expect((await run(['audit', '--shard', 'one'], { env })).code).toBe(2)
  })

  it('says how far it has come when it takes longer than a second', async () => {
    await on.postgres.query(
      `INSERT INTO wallets (ref, tenant, id, currency, opened_at, initial_limit, genesis, epoch, owner, seq, head, at, available,
                            reserved, credit_limit, status, due, since)
       SELECT md5(n::text)::uuid, 'default', 'seeded_' || n, 'usd', 0, 0, '\\x00', 1, 'postgres', 0, '\\x00', 0, 0, 0, 0, 'active', 0, 0
       FROM generate_series(1, 5000) n`,
    )
    // Each of them begins with something else than it should: found, reported, and counted where there are too many to list.
    const { code, stdout, stderr } = await run(['audit', '--full', '--no-repair'], { env })
    expect(code).toBe(1)
    expect(stderr).toMatch(/^holdfast: \d of 2 shards, [\d,]+ wallets, [\d,]+ findings so far$/m)
    expect(stdout).toMatch(/^… and 4,000 more$/m)
    expect(stdout).toMatch(/^5,000 found, 0 repaired, 5,000 not\.$/m)
  })
})

describe('holdfast rebuild', () => {
  it('fills an empty Redis, beside what is there already', async () => {
    await on.redis.flushdb()
    const { code, stdout, stderr } = await run(['rebuild'], { env })
    expect([code, complaintsIn(stderr)]).toEqual([0, ''])
    expect(stdout).toMatch(/^2 shards, 2 wallets looked at: 2 loaded, 0 were there, 0 failed, in \d+\.\d s\n$/)
    expect(await walletKeys(on.redis)).toHaveLength(2)
    const again = await run(['rebuild', '--json', '--all'], { env })
    expect(JSON.parse(again.stdout)).toMatchObject({ shards: [0, 1], wallets: 2, loaded: 0, there: 2, failed: 0 })
    const forced = await run(['rebuild', '--json', '--force', '--shard', '0'], { env })
    expect(JSON.parse(forced.stdout)).toMatchObject({ shards: [0], there: 0 })
  })

  it('says in its help which wallets it takes', async () => {
    const { stdout } = await run(['rebuild', '--help'])
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain(
      'the wallets with open holds and those that were used lately, or all',
    )
  })
})

describe('the server', () => {
  it('audits in the background, counts what it finds, and tells a webhook of it', async () => {
    const secret = 'sixteen characters'
    const received: { signature: string; body: string }[] = []
    const receiver = createServer(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      received.push({ signature: request.headers['holdfast-signature'] as string, body })
      response.writeHead(received.length === 1 ? 503 : 204).end()
    }).listen(0, '127.0.0.1')
    await once(receiver, 'listening')
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
    const server = await holdfast(['serve', '--port', '0'], {
      env: {
        ...env,
        HOLDFAST_AUDIT_INTERVAL_MS: '1000',
        HOLDFAST_AUDIT_WEBHOOK_URL: url,
        HOLDFAST_AUDIT_WEBHOOK_SECRET: secret,
      },
    })
    const base = await server.ready()
    await tamper(on, 'user_42', 'available', 500)
    await vi.waitFor(() => expect(received.length).toBeGreaterThanOrEqual(2), 60_000)
    receiver.close()
    const [first, second] = received as [(typeof received)[0], (typeof received)[0]]
    // Turned away at first, and told again.
    expect(second.body).toBe(first.body)
    const seconds = /^t=(\d+),/.exec(second.signature)?.[1] as string
    const digest = createHmac('sha256', secret).update(`${seconds}.${second.body}`).digest('hex')
    expect(second.signature).toBe(`t=${seconds},v1=${digest}`)
    const { findings } = JSON.parse(second.body)
    expect(findings).toMatchObject([{ cause: 'hot_state_differs', expected: 70, found: 570, action: 'repaired' }])
    expect(second.body).not.toContain('user_42')

    const metrics = await (await fetch(`${base}/metrics`)).text()
    expect(metrics).toContain('holdfast_audit_findings_total{cause="hot_state_differs",action="repaired"} 1')
    expect(metrics).toMatch(/^holdfast_audits_total\{outcome="done"\} [1-9]/m)
    expect(metrics).toMatch(/^holdfast_audit_wallets_total\{where="journal"\} [1-9]/m)
    expect(metrics).toMatch(/^holdfast_audit_waited_seconds [\d.e-]+$/m)
    const ended = await server.stop()
    expect(ended.code).toBe(0)
    const line = ended.stderr.split('\n').find((one) => one.includes('audit_finding')) as string
    expect(JSON.parse(line)).toMatchObject({ level: 'warn', cause: 'hot_state_differs', action: 'repaired' })
    expect(ended.stderr).not.toContain('user_42')
  })

  it('wants both, an address and a secret', async () => {
    const { code, stderr } = await run(['serve'], {
      env: { ...env, HOLDFAST_AUDIT_WEBHOOK_URL: 'https://example.com' },
    })
    expect(code).toBe(2)
    expect(stderr).toBe(
      'holdfast: HOLDFAST_AUDIT_WEBHOOK_SECRET: expected at least 16 characters, because HOLDFAST_AUDIT_WEBHOOK_URL is given, got nothing\n',
    )
  })
})
