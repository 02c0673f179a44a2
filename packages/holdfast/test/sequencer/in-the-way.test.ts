import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { freshRedis } from '../../../../test/servers.js'
import { command, type Entry, hashEntry, packEntry } from '../../src/machine/index.js'
import { Keys, type Place } from '../../src/redis/index.js'
import { emptyState } from '../machine/oracle.js'
import { AcquaintedSequencer } from './support/acquainted.js'
import { runnerOn } from './support/runner.js'

/** Whatever somebody has put where it does not belong: a wallet can be loaded, and keeps what was acknowledged from memory. */
const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 7), shards: 1 })
const HEAD = '0'.repeat(40)

let redis: Redis
let sequencer: AcquaintedSequencer
let place: Place
let wallets = 0

beforeAll(async () => {
  redis = new Redis(await freshRedis())
  const now = () => Date.now()
  const options = { aheadMaxMs: 60_000, helpAfterMs: 1_000, idleAfterMs: 60_000, pendingMax: 100, now }
  sequencer = new AcquaintedSequencer(runnerOn(redis), options)
})
afterAll(() => redis.disconnect())

const install = (epoch: number) =>
  sequencer.install('test', {
    place,
    state: emptyState(HEAD, epoch),
    memory: true,
    deadline: Date.now() + 60_000,
    clock: Date.now(),
    finalKeys: [],
  })
const take = () => sequencer.look(place, 2, 'test', 60_000)
const pendingKeys = async () => (await sequencer.look(place, 0, 'test', 0)).pending.map(({ entry }) => entry.key)

beforeEach(async () => {
  place = keys.of(`w${++wallets}`)
  await install(1)
  await sequencer.decide({
    wallets: [{ place, epochMin: 0, epoch: 0, acked: 0, known: 0 }],
    commands: ['a', 'b', 'c'].map((key) => ({
      wallet: 0,
      command: command({ kind: 'credit', key, amount: 1 }),
      deadline: Date.now() + 60_000,
      memory: true,
    })),
  })
})

describe('something else in the place of the lease', () => {
  beforeEach(() => redis.hset(place.leaseKey, 'a', 'b'))

  it('makes room for whoever wants to load the wallet, and no other', async () => {
    expect(await sequencer.renewLoad(place, 'test', 60_000)).toBeFalsy()
    expect(await take()).toMatchObject({ why: 'epoch', lease: 'leased' })
    expect(await sequencer.look(place, 2, 'another', 60_000)).toMatchObject({ lease: 'busy' })
    expect(await redis.pttl(place.leaseKey)).toBeGreaterThan(0)
  })

  it('does not keep a wallet from being installed, nor what was acknowledged from memory from being in it', async () => {
    expect(await install(2)).toEqual({ type: 'installed', lost: [] })
    expect(await pendingKeys()).toEqual(['a', 'b', 'c'])
    expect(await redis.exists(place.leaseKey)).toBe(0)
  })
})

it('leaves the lease of another where it is', async () => {
  await sequencer.look(place, 2, 'another', 60_000)
  expect(await take()).toMatchObject({ lease: 'busy' })
  await install(2)
  expect(await redis.get(place.leaseKey)).toBe('another')
})

it('reports what can not be decided again, and decides the rest', async () => {
  const { pending } = await sequencer.look(place, 0, 'test', 0)
  const unheardOf: Entry = { ...(pending[1]?.entry as Entry), params: 'unheard of' }
  await redis.hset(place.walletKey, 'e:2', packEntry({ ...unheardOf, hash: hashEntry(unheardOf) }))
  expect(await install(2)).toEqual({ type: 'installed', lost: [{ key: 'b', code: 'damaged' }] })
  expect(await pendingKeys()).toEqual(['a', 'c'])
})
