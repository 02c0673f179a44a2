import { type RedisClusterHandle, startRedisCluster } from '@holdfast/services'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { emptyStock } from '../../src/machine/index.js'
import { Keys, RedisConnection, RedisScriptRunner } from '../../src/redis/index.js'
import { emptyState } from '../machine/oracle.js'
import { AcquaintedSequencer } from '../sequencer/support/acquainted.js'
import { countNever, script } from './support/scripts.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 7), shards: 1 })
const wallet = (id: string) => keys.place(keys.ref(id)).walletKey
const countBoth = script(
  'count-both',
  'keys 2 | resend never',
  "return {redis.call('INCR', KEYS[1]), redis.call('INCR', KEYS[2])}",
)

interface Member {
  redis: Redis
  port: number
  id: string
}
let cluster: RedisClusterHandle
let connection: RedisConnection
let runner: RedisScriptRunner
let from: Member
let to: Member
let slot: number

async function member(port: number): Promise<Member> {
  const redis = new Redis({ host: '127.0.0.1', port })
  return { redis, port, id: (await redis.cluster('MYID')) as string }
}

beforeAll(async () => {
  // Long: a machine that stands still for a moment is not to be taken for a master that died.
  cluster = await startRedisCluster({ nodeTimeoutMs: 10_000 })
  connection = new RedisConnection({ cluster: [...cluster.addresses] })
  runner = new RedisScriptRunner(connection)
  const masters = await Promise.all(cluster.nodes.slice(0, 3).map(({ port }) => member(port)))
  slot = (await masters[0]?.redis.cluster('KEYSLOT', wallet('any'))) as number
  const owner = await cluster.masterOfSlot(slot)
  from = masters.find(({ port }) => port === owner.port) as Member
  to = masters.find(({ port }) => port !== owner.port) as Member
  for (const other of masters) if (other !== from && other !== to) other.redis.disconnect()
})
afterAll(async () => {
  await connection.close()
  from.redis.disconnect()
  to.redis.disconnect()
  await cluster.stop()
})

const move = (key: string) => from.redis.call('MIGRATE', '127.0.0.1', to.port, key, 0, 20_000)

it('follows a slot from node to node, before, during and after its move', async () => {
  const [stays, moves, fresh] = [wallet('stays'), wallet('moves'), wallet('fresh')]
  expect(await runner.run(countBoth, [stays, moves], [])).toEqual([1, 1])

  await to.redis.cluster('SETSLOT', slot, 'IMPORTING', from.id)
  await from.redis.cluster('SETSLOT', slot, 'MIGRATING', to.id)
  // Still where they were; a key that is not there yet is asked for at the new place.
  expect(await runner.run(countBoth, [stays, moves], [])).toEqual([2, 2])
  expect(await runner.run(countNever, [fresh], [])).toBe(1)
  expect(await to.redis.cluster('COUNTKEYSINSLOT', slot)).toBe(1)

  // One key here, one there: no node can run the call until the move is over.
  await move(moves)
  const split = runner.run(countBoth, [stays, moves], [])
  await expect(split).rejects.toMatchObject({
    code: 'unavailable',
    outcome: 'not_executed',
    // Which of the two comes last depends on the node that was asked last.
    message: expect.stringMatching(/: (TRYAGAIN|MOVED) .*; it did not run$/),
  })

  await move(stays)
  expect(await runner.run(countBoth, [stays, moves], [])).toEqual([3, 3])
  for (const { redis } of [to, from]) await redis.cluster('SETSLOT', slot, 'NODE', to.id)
  expect(await runner.run(countBoth, [stays, moves], [])).toEqual([4, 4])
  expect((await cluster.masterOfSlot(slot)).port).toBe(to.port)
})

it('installs no sale while its slot is on the move, and leaves the one that is there as it is', async () => {
  const sequencer = new AcquaintedSequencer(runner, {
    aheadMaxMs: 60_000,
    helpAfterMs: 1_000,
    idleAfterMs: 60_000,
    pendingMax: 100,
    now: () => Date.now(),
  })
  const place = keys.ofSale('moved', 0)
  const load = async (epoch: number, meanwhile = async () => {}) => {
    const stock = { ...emptyStock(), taken: new Map([[1, 1]]) }
    const state = { ...emptyState('0'.repeat(40)), epoch, at: Date.now(), stock }
    await sequencer.look(place, epoch, 'test', 60_000)
    await sequencer.stage('test', place, state)
    await meanwhile()
    const installation = {
      place,
      state,
      memory: false,
      deadline: Date.now() + 60_000,
      clock: Date.now(),
      finalKeys: [],
    }
    return sequencer.install('test', installation)
  }
  const keysThere = () => to.redis.exists(place.walletKey, place.stockKey)

  expect(await load(1)).toMatchObject({ type: 'installed' })
  expect(await keysThere()).toBe(2)
  const onTheMove = load(2, async () => {
    await from.redis.cluster('SETSLOT', slot, 'IMPORTING', to.id)
    await to.redis.cluster('SETSLOT', slot, 'MIGRATING', from.id)
  })
  await expect(onTheMove).rejects.toMatchObject({ code: 'unavailable', outcome: 'not_executed' })
  expect(await keysThere()).toBe(2)
  for (const { redis } of [to, from]) await redis.cluster('SETSLOT', slot, 'STABLE')
  expect(await load(3)).toMatchObject({ type: 'installed' })
})
