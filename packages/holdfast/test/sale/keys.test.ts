import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Holdfast } from 'holdfast'
import { Cluster, Redis } from 'ioredis'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Valkey } from '../../../../sim/valkey.js'
import { freshDatabase, freshRedis, sharedCluster } from '../../../../test/servers.js'
import { checkoutWords, command, emptyStock } from '../../src/machine/index.js'
import { Keys } from '../../src/redis/index.js'
import { emptyState } from '../machine/oracle.js'
import { AcquaintedSequencer } from '../sequencer/support/acquainted.js'

const HOUR = 3_600_000
const MINUTE = 60_000

interface Sample {
  readonly key: string
  /** Milliseconds that it is kept; -1: without end. */
  readonly stays: number
  /** Null: not a wallet. */
  readonly pending: boolean | null
}

/** What a key is, at one moment: the numbers of a core stand where `lua/wallet/state.lua` puts them. */
const SAMPLE = `
local core = redis.call('TYPE', KEYS[1]).ok == 'hash' and redis.call('HGET', KEYS[1], 'core')
if not core then return { redis.call('PTTL', KEYS[1]), -1 } end
local seq, acked = struct.unpack('<d', core, 12), struct.unpack('<d', core, 76)
return { redis.call('PTTL', KEYS[1]), seq > acked and 1 or 0 }`

const places = {
  'a single server': async () => {
    const url = await freshRedis()
    const raw = new Redis(url)
    return { redis: url, nodes: () => [raw], raw }
  },
  'a Cluster': async () => {
    const cluster = await sharedCluster()
    const raw = new Cluster(cluster)
    await raw.ping()
    return { redis: { cluster }, nodes: () => raw.nodes('master'), raw }
  },
}

describe.each(Object.entries(places))('the keys of a sale on %s', (_, start) => {
  const tenant = `t${randomUUID().slice(0, 8)}`
  let place: Awaited<ReturnType<typeof start>>
  let hf: Holdfast
  beforeAll(async () => {
    place = await start()
    // A machine that stands still for a moment is no reason to leave in Redis what is past.
    const redisOptions = { commandTimeoutMs: 20_000 }
    const postgres = await freshDatabase()
    hf = await Holdfast.connect({ redis: place.redis, postgres, redisOptions, tenant, audit: false })
  })
  afterAll(async () => {
    await hf.close()
    place.raw.disconnect()
  })

  /** All that is kept of the tenant, which has this one sale. */
  const samples = async (): Promise<Sample[]> => {
    const found: Sample[] = []
    for (const node of place.nodes()) {
      for (let cursor = '0'; ; ) {
        const [next, keys] = await node.scan(cursor, 'MATCH', `hf:${tenant}:*`, 'COUNT', 1_000)
        for (const key of keys) {
          const [stays, pending] = (await node.eval(SAMPLE, 1, key)) as [number, number]
          if (stays !== -2) found.push({ key, stays, pending: pending === -1 ? null : pending === 1 })
        }
        cursor = next
        if (cursor === '0') break
      }
    }
    return found
  }
  /** As if an hour had passed: what is kept until a time is kept for an hour less. */
  const anHourLater = async (): Promise<void> => {
    for (const { key, stays } of await samples()) {
      if (stays >= 0) await place.raw.pexpire(key, Math.max(0, stays - HOUR))
    }
  }

  it('are gone an hour after its end, and none lacks an end once nothing is pending', async () => {
    const sale = hf.sale('ends')
    const endsAt = Date.now() + 10_000
    const items = [{ id: 'a', quantity: 500 }]
    await sale.open({ items, perUser: 3, startsAt: Date.now() - 1_000, endsAt, buckets: 3 })
    let over = false
    const seen: Sample[] = []
    const sampling = (async () => {
      for (; !over; await sleep(20)) seen.push(...(await samples()))
    })()
    const buy = async (user: string) => {
      const { code } = await sale.checkout({ user, items: [{ id: 'a' }], key: `${user}-1` })
      if (user.endsWith('1')) return code
      await sale.purchase(code)
      return code
    }
    const codes = await Promise.all(Array.from({ length: 60 }, (_, n) => buy(`user-${n}`)))
    await sale.close()
    // Those that nobody has bought run out with the sale, whether anybody asks or not.
    await expect.poll(() => sale.status(), { timeout: 40_000 }).toMatchObject({ stock: 446, reserved: 0, sold: 54 })
    await expect.poll(async () => (await samples()).filter(({ stays }) => stays < 0), { timeout: 30_000 }).toEqual([])
    over = true
    await sampling

    // A wallet and its stock end together, so that what is true of the one is true of the other.
    expect(seen.some(({ pending }) => pending === true)).toBe(true)
    expect(seen.filter(({ pending, stays }) => pending !== null && pending !== stays < 0)).toEqual([])
    // What was set aside for a load that came to nothing goes after a minute.
    const stocks = async () => (await samples()).filter(({ key }) => key.includes(':stock:'))
    await expect.poll(stocks, { timeout: 90_000 }).toHaveLength(3)
    const kept = await samples()
    expect(kept.filter(({ key }) => key.includes(':wallet:'))).toHaveLength(3)
    for (const { stays } of kept) expect(stays).toBeLessThanOrEqual(HOUR)

    await anHourLater()
    expect(await samples()).toEqual([])

    // The record stays.
    expect(await sale.purchase(codes[0] as string)).toMatchObject({ replayed: true })
    await expect(sale.purchase(codes[1] as string)).rejects.toMatchObject({ code: 'checkout_expired' })
    expect(await sale.status()).toMatchObject({ stock: 446, reserved: 0, sold: 54 })
    for (const { stays } of await samples()) expect(stays).toBeGreaterThan(0)
    for (const { stays } of await samples()) expect(stays).toBeLessThanOrEqual(HOUR)
  }, 240_000)
})

describe('the keys of a sale while the clock moves', () => {
  const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 7), shards: 1 })
  const place = keys.ofSale('moved', 0)
  let now = 1_700_000_000_000
  let began = now
  let endsAt = now
  let valkey: Valkey
  let sequencer: AcquaintedSequencer
  beforeAll(async () => {
    valkey = await Valkey.start({ now: () => now, random: (bytes) => bytes.fill(1) })
    sequencer = new AcquaintedSequencer(
      { run: async (script, names, args) => valkey.run(script, names, args) },
      { aheadMaxMs: MINUTE, helpAfterMs: 10_000, idleAfterMs: 24 * HOUR, pendingMax: 100, now: () => now },
    )
  })

  const own = () => valkey.keys().filter((key) => key.includes(place.ref))
  const stays = () => [place.walletKey, place.stockKey].map((key) => valkey.call('PTTL', key))
  const knowledge = (acked: number) => ({ place, epochMin: 0, epoch: 2, acked, known: acked })
  const decide = (given: Parameters<typeof command>[0], acked: number) =>
    sequencer.decide({
      wallets: [knowledge(acked)],
      commands: [{ wallet: 0, command: command(given), deadline: Number.MAX_SAFE_INTEGER, memory: false }],
    })
  const checkout = (key: string) => ({
    kind: 'checkout' as const,
    key,
    also: checkoutWords({
      reserves: true,
      ttlMs: HOUR,
      from: began,
      until: endsAt,
      perBuyer: 2,
      buyer: key,
      lines: [{ item: 1, quantity: 1, share: 2 }],
    }),
  })
  const install = async () => {
    began = now
    endsAt = now + HOUR
    const state = { ...emptyState('0'.repeat(40)), epoch: 2, at: now, available: 2, stock: emptyStock() }
    const deadline = Number.MAX_SAFE_INTEGER
    await sequencer.install('test', { place, state, memory: false, deadline, clock: now, finalKeys: [] })
  }

  it('keeps what is pending without end, however late it becomes, and lets it go an hour after the end once it is in the journal', async () => {
    await install()
    // Nobody has checked out: it is not known when the sale ends, and nobody needs it to be here.
    expect(stays()).toEqual([HOUR, HOUR])
    await decide(checkout('ann'), 0)
    expect(stays()).toEqual([-1, -1])
    now = endsAt + 5 * HOUR
    expect(own()).toHaveLength(2)

    // What ran out with the sale comes to light, and is pending in its turn.
    const [found] = await sequencer.tend(place.agendaKey, [knowledge(1)])
    expect(found).toMatchObject({ entries: [{ kind: 'expire', seq: 2 }] })
    expect(stays()).toEqual([-1, -1])
    await sequencer.tend(place.agendaKey, [knowledge(2)])
    expect(stays()).toEqual([MINUTE, MINUTE])
    now += MINUTE + 1
    expect(own()).toEqual([])
  })

  it('ends at its time where everything was in the journal before that, and no refusal puts it off', async () => {
    await install()
    await decide(checkout('ann'), 0)
    await decide({ kind: 'purchase', key: 'buy', hold: 'ann', also: 'all 2' }, 1)
    await sequencer.tend(place.agendaKey, [knowledge(2)])
    expect(stays()).toEqual([2 * HOUR, 2 * HOUR])
    now = endsAt + HOUR - 1
    const { answers } = await decide(checkout('bob'), 2)
    expect(answers).toMatchObject([{ type: 'rejected', code: 'sale_not_active' }])
    expect(stays()).toEqual([1, 1])
    now += 2
    expect(own()).toEqual([])
    // Gone is not empty.
    expect((await decide(checkout('bob'), 2)).answers).toMatchObject([{ type: 'untrusted' }])
  })
})

it('gives back what ran out in a sale that is nowhere in Redis, once', async () => {
  const [url, postgres] = [await freshRedis(), await freshDatabase()]
  const raw = new Redis(url)
  const hf = await Holdfast.connect({ redis: url, postgres, audit: false })
  const sale = hf.sale('cold')
  const startsAt = Date.now() - 1_000
  await sale.open({ items: [{ id: 'a' }], perUser: 1, startsAt, endsAt: startsAt + 6_000 })
  const { code } = await sale.checkout({ user: 'ann', items: [{ id: 'a' }], key: 'ann-1' })
  await raw.flushdb()
  await expect.poll(() => sale.status(), { timeout: 30_000 }).toMatchObject({ stock: 1, reserved: 0, sold: 0 })
  await raw.flushdb()
  await expect(sale.purchase(code)).rejects.toMatchObject({ code: 'checkout_expired' })
  const client = new pg.Client(postgres)
  await client.connect()
  const { rows } = await client.query('SELECT kind FROM holdfast.entries ORDER BY seq')
  expect(rows.map(({ kind }) => kind)).toEqual(['credit', 'hold', 'expire'])
  await Promise.all([client.end(), hf.close()])
  raw.disconnect()
}, 120_000)
