import { type RedisHandle, startPostgres, startRedis } from '@holdfast/services'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { Holdfast } from '../../src/index.js'
import { FixedWindow, Marker, Primitives } from '../../src/primitives/index.js'
import { inspectRedis, RedisConnection } from '../../src/redis/index.js'
import { refusal, until } from '../api/support/paths.js'
import { RIGHTS } from './support/rights.js'

const ENGINE = { sweepEveryMs: 600_000 }

let server: RedisHandle
let owner: Redis
beforeAll(async () => {
  server = await startRedis({ source: 'installed' })
  owner = new Redis(server.url)
})
afterAll(async () => {
  owner.disconnect()
  await server.stop()
})

/** A user with these rights, and the URL to connect as him. */
async function as(...rights: string[]): Promise<string> {
  await owner.acl('SETUSER', 'holdfast', 'reset', 'on', '>secret', ...rights)
  await owner.acl('LOG', 'RESET')
  const url = new URL(server.url)
  Object.assign(url, { username: 'holdfast', password: 'secret' })
  return url.href
}

const checked = async (url: string) => {
  const redis = new RedisConnection(url)
  const checks = await inspectRedis(redis, { memory: false })
  await redis.close()
  return checks.find(({ setting }) => setting === 'rights')
}

describe('with the rights that the docs list, and no others', () => {
  let url: string
  beforeEach(async () => {
    url = await as(...RIGHTS.others, ...RIGHTS.commands)
  })
  afterEach(async () => {
    const log = (await owner.acl('LOG')) as unknown[][]
    const denied = log.map((entry) => entry[entry.indexOf('object') + 1])
    // Where it is allowed it is told when snapshots are written; nothing needs it.
    expect(denied.filter((what) => what !== 'config|get')).toEqual([])
  })

  it('nothing is found to be missing', async () => {
    expect(RIGHTS.commands).toContain('+info')
    expect(await checked(url)).toMatchObject({ severity: 'ok' })
  })

  it('wallets, sales and locks are decided by Redis', async () => {
    const counts: Record<string, number> = {}
    const count = (name: string, labels = {}) => {
      const one = [name, ...Object.values(labels)].join(' ')
      counts[one] = (counts[one] ?? 0) + 1
    }
    const hf = await Holdfast.connect({
      redis: url,
      postgres: await freshDatabase(),
      telemetry: { count },
      engine: { sweepEveryMs: 20 },
    })
    const wallet = hf.wallet('w')
    await wallet.open({ currency: 'usd' })
    await wallet.credit(100, { key: 'in' })
    const hold = await wallet.hold(50, { key: 'call', ttl: 60_000 })
    await hold.capture(10, { key: 'minute' })
    expect(await hold.settle(20, { key: 'end' })).toMatchObject({ available: 80, reserved: 0 })
    expect(await refusal(wallet.debit(81, { key: 'too much' }))).toMatchObject({ code: 'insufficient_funds' })
    expect(await wallet.get({ pending: true })).toMatchObject({ available: 80 })
    expect(await wallet.exclusive(async () => 'alone')).toBe('alone')
    const sale = hf.sale('s')
    await sale.open({ perUser: 1, startsAt: 0, endsAt: Date.now() + 3_600_000, items: [{ id: 'shoe', quantity: 2 }] })
    const { code } = await sale.checkout({ user: 'me', items: [{ id: 'shoe', quantity: 1 }], key: 'c' })
    await sale.purchase(code)
    // The sweeper has its rights too.
    await until(() => (counts['holdfast_sweeps_total done'] ?? 0) >= 2)
    await hf.close()
    expect(counts['holdfast_sweeps_total failed']).toBeUndefined()
    expect(counts['holdfast_circuit_changes_total redis open']).toBeUndefined()
    expect(counts['holdfast_recoveries_total fallback']).toBeUndefined()
  })

  it('primitives work', async () => {
    const primitives = await Primitives.connect({ redis: url, secret: 'a secret of tests, long enough' })
    expect(await new FixedWindow(primitives, 'logins').add('me')).toMatchObject({ count: 1 })
    expect(await new Marker(primitives, 'seen').tryClaim('me')).toMatchObject({ result: 'claimed' })
    await primitives.close()
  })
})

describe('a right that is missing is a danger', () => {
  it.each([
    ['INFO', '-info', 'INFO is refused'],
    ['a command that only some calls come to', '-rename', 'RENAME is refused'],
    ['EVALSHA', '-evalsha', "'evalsha'"],
    ['the keys', 'resetkeys', 'keys'],
  ])('%s', async (_, without, said) => {
    const found = await checked(await as(...RIGHTS.others, ...RIGHTS.commands, without))
    expect(found).toMatchObject({ severity: 'danger', text: expect.stringContaining(said) })
    expect(found?.text).toContain('docs/operating/deployment.md')
  })

  it('and so is a command that was taken away', async () => {
    const bare = await startRedis({ source: 'installed', settings: ['rename-command ZSCAN ""'] })
    expect(await checked(bare.url)).toMatchObject({ severity: 'danger', text: expect.stringContaining('ZSCAN') })
    await bare.stop()
  })
})

describe('without the right to INFO', () => {
  it('strict refuses to start', async () => {
    const redis = await as(...RIGHTS.others, ...RIGHTS.commands, '-info')
    const lasting = await startPostgres({ durable: true })
    const error = await refusal(Holdfast.connect({ redis, postgres: lasting.url, strict: true }))
    expect(error).toMatchObject({ code: 'incompatible', setting: 'rights' })
    await lasting.stop()
  })

  it('everything goes through Postgres, a "no" too, until the right is given', async () => {
    const redis = await as(...RIGHTS.others, ...RIGHTS.commands, '-info')
    const seen = { away: 0, back: 0, probes: 0, decisions: 0, told: [] as unknown[] }
    const hf = await Holdfast.connect({
      redis,
      postgres: await freshDatabase(),
      engine: ENGINE,
      telemetry: {
        count: (name, labels) => {
          if (name === 'holdfast_circuit_changes_total') seen[labels?.to === 'open' ? 'away' : 'back'] += 1
          if (name === 'holdfast_decisions_total') seen.decisions += 1
        },
        observe: (name, _value, labels) => {
          if (name === 'redis_command_duration_seconds' && labels?.command === 'redis_probe') seen.probes += 1
        },
        log: (_level, event, facts) => void (event === 'redis_setting' && seen.told.push(facts?.setting)),
      },
    })
    expect(seen.told).toEqual(['rights'])
    const wallet = hf.wallet('w')
    await wallet.open({ currency: 'usd' })
    await wallet.credit(5, { key: 'in' })
    await until(() => seen.probes >= 3)
    expect(await refusal(wallet.debit(6, { key: 'no' }))).toMatchObject({ code: 'insufficient_funds' })
    expect(await wallet.debit(5, { key: 'yes' })).toMatchObject({ available: 0 })
    expect(seen).toMatchObject({ away: 1, back: 0, decisions: 0 })
    await owner.acl('SETUSER', 'holdfast', '+info')
    await until(() => seen.back === 1)
    await wallet.credit(1, { key: 'back' })
    expect(seen.decisions).toBeGreaterThan(0)
    await hf.close()
  })
})
