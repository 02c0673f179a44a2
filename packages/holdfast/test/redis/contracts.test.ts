import { type RedisHandle, startRedis } from '@holdfast/services'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Locks } from '../../src/lock/index.js'
import { type Command, checkoutWords, command, emptyStock } from '../../src/machine/index.js'
import { Keys, type Place, type Script, scripts } from '../../src/redis/index.js'
import { lockTake } from '../../src/redis/scripts.generated.js'
import { type SequencedCommand, Sequencer } from '../../src/sequencer/index.js'
import { emptyState } from '../machine/oracle.js'
import { AcquaintedSequencer } from '../sequencer/support/acquainted.js'
import { useActivity } from './support/activity-calls.js'
import { useBlooms } from './support/bloom-calls.js'
import { useCells } from './support/cell-calls.js'
import { useExposure } from './support/exposure-calls.js'
import { useFlags } from './support/flags-calls.js'
import { useFlights } from './support/flight-calls.js'
import { useIdempotency } from './support/idempotency-calls.js'
import { usePacked, usePermissions } from './support/layout-calls.js'
import { useLeases } from './support/lease-calls.js'
import { useLimits } from './support/limits-calls.js'
import { useMarkers } from './support/marker-calls.js'
import { useOtp } from './support/otp-calls.js'
import { script } from './support/scripts.js'
import { useSequences } from './support/sequence-calls.js'
import { useShardedCounters } from './support/sharded-calls.js'
import { StrictRunner, sitesOf } from './support/strict-runner.js'
import { useStripe402 } from './support/stripe402-calls.js'
import { useTokens } from './support/token-calls.js'
import { useWindows } from './support/window-calls.js'

const shipped: readonly Script[] = Object.values(scripts)
const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 7), shards: 1 })
const HEAD = '0'.repeat(40)
const FOREVER = Number.MAX_SAFE_INTEGER
/** In the past, so that the caller's clock, and not the server's, is what the scripts go by. */
const START = 1_600_000_000_000
const OPTIONS = { aheadMaxMs: 0, helpAfterMs: 1_000, idleAfterMs: 60_000, pendingMax: 1_000, now: () => START }

let server: RedisHandle
let runner: StrictRunner
beforeAll(async () => {
  server = await startRedis({ source: 'installed' })
})
beforeEach(async () => {
  runner = await StrictRunner.start(server.url)
})
afterEach(() => runner.close())
afterAll(() => server.stop())

describe('a script that touches more than its KEYS is caught', () => {
  it.each([
    ['a key made from an argument', "redis.call('GET', KEYS[1]) return redis.call('SET', 'hf:' .. ARGV[1], 1)"],
    ['a key made from a key', "return redis.call('HGET', KEYS[1] .. ':more', 'f')"],
    ['one key of several', "return redis.call('DEL', KEYS[1], 'other')"],
    ['all keys', "return redis.call('KEYS', '*')"],
    ['whatever there is', "return redis.call('SCAN', '0')"],
    ['everything', "return redis.call('FLUSHALL')"],
  ])('%s', async (_, code) => {
    const bad = script('bad', 'keys 1 | resend safe', code)
    await expect(runner.run(bad, ['hf:test:{0}:wallet:v1:x'], ['y'])).rejects.toThrow(/^(script )?bad/)
    expect(await runner.denied()).toHaveLength(1)
  })

  it('also where it hides that from its caller', async () => {
    const bad = script('bad', 'keys 1 | resend safe', "return redis.pcall('GET', 'elsewhere') and 'fine'")
    expect(String(await runner.run(bad, ['key'], []))).toBe('fine')
    expect(await runner.denied()).toEqual(['key elsewhere'])
  })

  it('and one that keeps to them is not', async () => {
    const good = script('good', 'keys 1+ | resend safe', "return redis.call('MSET', KEYS[1], 1, KEYS[2], 2)")
    expect(String(await runner.run(good, ['a*', 'b[c]'], []))).toBe('OK')
    expect(await runner.denied()).toEqual([])
  })
})

describe('every shipped script', () => {
  it.each(shipped.map((one) => [one.name, one] as const))('%s calls Redis only where a check can see it', (_, one) => {
    const code = one.source.replaceAll(/redis\.p?call\(/g, '').replaceAll('redis.sha1hex', '')
    expect(code).not.toMatch(/\bredis\b|\bloadstring\b|\bload\b|\b_G\b|\bsetfenv\b|\bgetfenv\b/)
  })

  it('touches only its KEYS, at each of its calls to Redis', async () => {
    await useEverything(runner)
    await useStock(runner)
    await useLocks(runner)
    await useIdempotency(runner)
    await useMarkers(runner)
    await useStripe402(runner)
    await useTokens(runner)
    await useWindows(runner)
    await useActivity(runner)
    await useExposure(runner)
    await usePermissions(runner)
    await usePacked(runner)
    await useCells(runner)
    await useShardedCounters(runner)
    await useSequences(runner)
    await useLimits(runner)
    await useOtp(runner)
    await useLeases(runner)
    await useFlights(runner)
    await useFlags(runner)
    await useBlooms(runner)
    expect(await runner.denied()).toEqual([])
    const reached = new Set(await runner.reached())
    expect(shipped.flatMap(sitesOf).filter((site) => !reached.has(site))).toEqual([])
  })
})

describe('the probe', () => {
  const commandsOf = ({ source }: Script) =>
    [...source.matchAll(/(?:redis\.p?call|in_parts)\('([A-Z]+)'/g)].map(([, name]) => name)

  it('tries every command that a script of the sequencer calls: no right is missed later', () => {
    const tried = commandsOf(scripts.redisProbe)
    const called = shipped.filter(({ name }) => /^(agenda|load|stock|wallet|witness)_/.test(name)).flatMap(commandsOf)
    expect(called.length).toBeGreaterThan(tried.length)
    expect([...new Set(called)].filter((name) => !tried.includes(name))).toEqual([])
  })
})

describe('the size of a call', () => {
  it.each(shipped.map((one) => [one.name, one] as const))('%s names a cap if it takes any number of keys', (_, one) => {
    expect(!one.keys.variable || one.batchMax !== null).toBe(true)
  })

  it('is checked before anything is sent', async () => {
    const sequencer = new Sequencer(runner, OPTIONS)
    const wallets = Array.from({ length: 65 }, (_, n) => ({
      place: placeOf(`${n}`),
      epochMin: 0,
      epoch: 1,
      acked: 0,
      known: 0,
    }))
    const commands = wallets.map((_, wallet) => {
      return { command: command({ kind: 'touch' }), wallet, deadline: FOREVER, memory: false }
    })
    await expect(sequencer.decide({ life: null, wallets, commands })).rejects.toThrow(
      'script wallet_decide: expected at most 64 commands in ARGV[1], got 65',
    )
    await expect(sequencer.tend(keys.agenda(0), wallets)).rejects.toThrow(
      'script wallet_tend: expected at most 64 commands in ARGV[1], got 65',
    )
    expect(await runner.reached()).toEqual([])
    const { answers } = await sequencer.decide({
      life: null,
      wallets: wallets.slice(1),
      commands: commands.slice(0, 64),
    })
    expect(answers).toHaveLength(64)
  })
})

/** One of everything that the sequencer can ask: enough to come by every call to Redis that stands in the scripts. */
async function useEverything(on: StrictRunner): Promise<void> {
  const redis = new Redis(server.url)
  let now = START
  const sequencer = new AcquaintedSequencer(on, { ...OPTIONS, now: () => now })
  const place = placeOf('wallet')
  const install = (epoch: number, memory: boolean) =>
    sequencer.install('me', {
      place,
      state: emptyState(HEAD, epoch),
      memory,
      deadline: FOREVER,
      clock: 0,
      finalKeys: [],
    })
  let acked = 0
  let epoch = 1
  const decide = async (...given: (Parameters<typeof command>[0] & { memory?: boolean })[]) => {
    const commands = given.map(({ memory = false, ...one }): SequencedCommand & { wallet: number } => {
      return { command: command(one), wallet: 0, deadline: FOREVER, memory }
    })
    const reply = await sequencer.decide({
      wallets: [{ place, epochMin: 0, epoch, acked, known: acked }],
      commands,
    })
    for (const answer of reply.answers) expect(answer.type).not.toMatch(/error|untrusted|unmarked/)
    return reply
  }

  expect((await sequencer.inspect([place]))[0]?.why).toBe('missing')
  // Something else in the lease's place.
  await redis.hset(place.leaseKey, 'no', 'lease')
  expect((await sequencer.look(place, 0, 'me', 1_000)).lease).toBe('leased')
  expect((await sequencer.look(place, 0, 'you', 1_000)).lease).toBe('busy')
  await install(epoch, true)
  await decide({ kind: 'credit', key: 'c', amount: 1_000 }, { kind: 'hold', key: 'h', amount: 100, ttlMs: 1_000 })
  expect((await sequencer.inspect([place]))[0]).toMatchObject({ why: 'trusted', pending: [{ seq: 1 }, { seq: 2 }] })
  expect((await sequencer.scan(place.agendaKey, '0', 10)).names).toEqual([place.agendaName])
  await decide({ kind: 'capture', key: 'p', hold: 'h', amount: 10 }, { kind: 'credit', key: 'c', amount: 1_000 })
  const facts = { epoch, seq: 3, refunded: 0, holdClosed: false, hold: { charged: 0, refunded: 0 } }
  await decide({ kind: 'refund', key: 'r', of: 3, charge: 10, amount: 1, facts })
  now += 5_000
  await decide({ kind: 'touch' })
  // More pending entries than there is room for at first.
  for (let round = 0; round < 12; round += 1) {
    const part = Array.from({ length: 10 }, (_, n) => ({ kind: 'credit' as const, key: `${round}-${n}`, amount: 1 }))
    await decide(...part)
    acked += 10
  }
  await decide({ kind: 'hold', key: 'm', amount: 5, ttlMs: 60_000 })
  // Decided again when the wallet is loaded anew, and then nobody has read its hold beforehand.
  await decide({ kind: 'capture', key: 'd', hold: 'm', amount: 5, memory: true })
  expect((await sequencer.look(place, 0, 'me', 0)).pending.length).toBeGreaterThan(0)
  epoch += 1
  await sequencer.look(place, epoch, 'me', 10_000)
  expect((await install(epoch, true)).type).toBe('installed')
  acked = 0
  await decide({ kind: 'credit', key: 'again', amount: 1 })

  expect((await sequencer.recall(place))?.entries.length).toBeGreaterThan(0)
  await sequencer.distrust(place, epoch)
  epoch += 1
  // Something else in the agenda's place.
  await redis.set(place.agendaKey, 'no agenda')
  expect((await install(epoch, true)).type).toBe('installed')
  await decide({ kind: 'credit', key: 'believed again', amount: 1 })
  const known = { ref: place.ref, epoch, seq: 1, hash: HEAD }
  await redis.hset(keys.witnesses, 'nobody', 'no note')
  for (let process = 0; process < 66; process += 1) {
    await sequencer.shareWitness(keys.witnesses, `process ${process}`, { number: 1, known })
  }
  expect((await sequencer.shareWitness(keys.witnesses, 'process 65', { number: 2, known })).length).toBe(64)

  await sequencer.probe(keys.probe(place.shard))
  expect((await sequencer.claim(place.agendaKey, 10, 1_000)).length).toBe(1)
  expect(await sequencer.tend(place.agendaKey, [{ place, epoch, acked: 0 }])).toEqual([expect.anything()])
  now += 120_000
  expect(await sequencer.tend(place.agendaKey, [{ place, epoch, acked: 1_000 }])).toEqual([null])
  expect(await sequencer.tend(place.agendaKey, [{ place, epoch, acked: 1_000 }])).toEqual([null])
  redis.disconnect()
}

/** A sale: a checkout that is bought, one that runs out, so that its stock comes back, and a sale that leaves Redis. */
async function useStock(on: StrictRunner): Promise<void> {
  let now = START
  const sequencer = new AcquaintedSequencer(on, { ...OPTIONS, now: () => now })
  const place = keys.ofSale('sale', 0)
  const stock = { ...emptyStock(), taken: new Map([[9, 1]]) }
  const state = { ...emptyState(HEAD), stock, available: 10 }
  await sequencer.look(place, 0, 'me', 1_000)
  await sequencer.renewLoad(place, 'me', 1_000)
  await sequencer.stage('me', place, state)
  await sequencer.unstage('me', place, state.epoch)
  await sequencer.stage('me', place, state)
  const installed = { place, state, memory: false, deadline: FOREVER, clock: 0, finalKeys: [] }
  expect((await sequencer.install('me', installed)).type).toBe('installed')
  const wallets = [{ place, epochMin: 0, epoch: state.epoch, acked: 0, known: 0 }]
  const decide = async (asked: Command) => {
    const { answers } = await sequencer.decide({
      wallets,
      commands: [{ command: asked, wallet: 0, deadline: FOREVER, memory: false }],
    })
    return answers
  }
  const checkout = (buyer: string, key: string) => {
    const order = { reserves: true, ttlMs: 1_000, from: 0, until: FOREVER, perBuyer: 5, buyer }
    const also = checkoutWords({ ...order, lines: [{ item: 1, quantity: 1, share: 2 }] })
    return command({ kind: 'checkout', key, hold: key, also })
  }
  expect(await decide(checkout('buyer', 'code'))).toEqual([{ type: 'accepted', seq: 1 }])
  expect(await decide(checkout('another', 'bought'))).toEqual([{ type: 'accepted', seq: 2 }])
  const purchase = command({ kind: 'purchase', key: 'p', hold: 'bought', also: 'all 5' })
  expect(await decide(purchase)).toEqual([{ type: 'accepted', seq: 3 }])
  expect((await sequencer.look(place, 0, 'me', 0)).why).toBe('trusted')
  for (const of of [{ buyer: 'buyer' }, { code: 'code' }]) {
    expect(await sequencer.running(place, 0, of)).toMatchObject({ hold: 'code' })
  }
  const asked = ['i:9', 'i:1', 'i:2', 'until']
  expect(await sequencer.inspectStock(place, asked)).toMatchObject({
    core: { seq: 3 },
    size: 9,
    values: ['1', '2', null, `${FOREVER}`],
    pending: [{ seq: 1 }, { seq: 2 }, { seq: 3 }],
  })
  expect(await sequencer.inspectStock(keys.ofSale('none', 0), asked)).toBeNull()
  expect(await sequencer.now(place)).toBe(START)
  now += 5_000
  const tended = (acked: number) => sequencer.tend(place.agendaKey, [{ place, epoch: state.epoch, acked }])
  expect(await tended(3)).toMatchObject([{ entries: [{ kind: 'expire' }] }])
  now += 120_000
  expect(await tended(4)).toEqual([null])
}

async function useLocks(on: StrictRunner): Promise<void> {
  const locks = new Locks(on, async () => 1, {})
  const key = keys.lock('wallet')
  const wanted = new AbortController().signal
  const lease = await locks.take(key, 60_000, wanted, undefined)
  await expect(locks.take(key, 60_000, wanted, undefined)).rejects.toMatchObject({ code: 'lock_busy' })
  await lease.release()
  // The same call twice, as after a reply that was lost.
  expect(await on.run(lockTake, [key], [1, 'me', 60_000])).toEqual([0])
  expect(await on.run(lockTake, [key], [1, 'me', 60_000])).toEqual([0])
}

function placeOf(id: string): Place {
  return keys.place(keys.ref(id))
}
