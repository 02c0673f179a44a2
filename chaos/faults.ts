/** What is done to a trial. Each leaves the servers as healthy as it found them; workers that it killed are replaced. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type RedisNode, startRedis } from '@holdfast/services'
import { walletDecide } from '../packages/holdfast/src/redis/scripts.generated.js'
import type { Worker } from './fleet.js'
import { onNode, TOPOLOGIES, type Topology } from './places.js'
import { moveSlots } from './slots.js'
import type { Trial } from './trial.js'

export interface Fault {
  readonly name: string
  readonly topologies: readonly Topology[]
  readonly inflict: (trial: Trial) => Promise<void>
}

const HEAL_WITHIN_MS = 90_000
const CUT_WITHIN_MS = 15_000
const EVICT_TRIES_MAX = 20
const ASK_AGAIN_MS = 7_000

export async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + HEAL_WITHIN_MS
  while (!(await isSo().catch(() => false))) {
    if (performance.now() > deadline) throw new Error(`Still not so after ${HEAL_WITHIN_MS} ms: ${what}`)
    await sleep(50)
  }
}

/** Those that decide. While one of them takes over from another there may be none, or one that does not know of it yet. */
async function mastersOf({ place }: Trial): Promise<RedisNode[]> {
  let masters: RedisNode[] = []
  await until('somebody decides', async () => {
    masters = await place.masters()
    const roles = await Promise.all(masters.map(replication))
    return roles.length > 0 && roles.every((role) => role.includes('role:master'))
  })
  return masters
}

const eachMaster = async (trial: Trial, act: Parameters<typeof onNode>[1]): Promise<void> => {
  await Promise.all((await mastersOf(trial)).map((node) => onNode(node, act)))
}

const replication = (node: RedisNode): Promise<string> => onNode(node, (redis) => redis.info('replication'))
const isLinked = async (node: RedisNode) => (await replication(node)).includes('master_link_status:up')

export async function flushAll(trial: Trial): Promise<void> {
  await eachMaster(trial, (redis) => redis.flushall())
}

/** One key here, one there: a wallet, and what says when somebody should look at one. */
export async function deleteKeys(trial: Trial): Promise<void> {
  await eachMaster(trial, async (redis) => {
    for (const key of await redis.keys('hf:*')) if (trial.chance.happens(0.3)) await redis.del(key)
    // A wallet in any case: there are few, and none may have been among them.
    const [wallet] = await redis.keys('hf:*:wallet:*')
    if (wallet !== undefined) await redis.del(wallet)
  })
}

/** A little less room than is used, for a moment. @returns how many keys had to go */
export async function evictKeys(trial: Trial): Promise<number> {
  let evicted = 0
  await eachMaster(trial, async (redis) => {
    const number = async (section: string, name: string) =>
      Number(new RegExp(`${name}:(\\d+)`).exec(await redis.info(section))?.[1])
    const before = await number('stats', 'evicted_keys')
    const gone = async () => (await number('stats', 'evicted_keys')) - before
    await redis.config('SET', 'maxmemory-policy', 'allkeys-random')
    // What was used may have been given back by then: buffers, most of it.
    for (let tries = 0; tries < EVICT_TRIES_MAX && (await gone()) === 0; tries += 1) {
      // Who has nothing to give up would only refuse all that comes.
      if ((await redis.dbsize()) === 0) break
      await redis.config('SET', 'maxmemory', (await number('memory', 'used_memory')) - 20_000)
      await sleep(300)
    }
    await redis.config('SET', 'maxmemory', 0)
    evicted += await gone()
  })
  return evicted
}

/** Saved, gone on, crashed, restarted from what was saved: back before anybody was promoted in its place, most often. */
export async function restoreOldSnapshot(trial: Trial): Promise<void> {
  const server = await busiest(await mastersOf(trial))
  await onNode(server, (redis) => redis.save())
  await trial.underLoad()
  await server.kill()
  await server.restart()
  await mastersOf(trial)
}

/** Demoted to follow a server that is behind, and promoted again: the same process, the same connections, an older state. */
export async function demoteAndPromote(trial: Trial): Promise<void> {
  const [server] = (await mastersOf(trial)) as [RedisNode]
  // A copy of a few kB need not wait for others who might want it too.
  const atOnce = 'repl-diskless-sync-delay'
  const peer = await startRedis({ source: 'installed', settings: [`${atOnce} 0`] })
  try {
    await onNode(server, (redis) => redis.config('SET', atOnce, 0))
    await onNode(peer, (redis) => redis.replicaof('127.0.0.1', server.port))
    await until('the peer follows', () => isLinked(peer))
    await onNode(peer, (redis) => redis.replicaof('NO', 'ONE'))
    await trial.underLoad()
    await onNode(server, (redis) => redis.replicaof('127.0.0.1', peer.port))
    await until('the server follows', () => isLinked(server))
    await onNode(server, (redis) => redis.replicaof('NO', 'ONE'))
  } finally {
    await peer.stop()
  }
}

/** The one that has most to lose. */
async function busiest(nodes: readonly RedisNode[]): Promise<RedisNode> {
  const keys = await Promise.all(nodes.map((node) => onNode(node, (redis) => redis.dbsize())))
  return nodes[keys.indexOf(Math.max(...keys))] as RedisNode
}

/**
 * Replicas hear nothing for a while: stopped, and their links closed, or what waits in a socket would reach them after all. Then the
 * master dies, and one of them is promoted. @returns by how many bytes of changes it was behind
 */
export async function failOverToLaggingReplica(trial: Trial): Promise<number> {
  const { place } = trial
  const before = await mastersOf(trial)
  // One that is still on its way back would not be stopped with the others, and would lag behind nothing.
  await until('every replica follows', async () =>
    (await Promise.all(place.nodes.filter((node) => !before.includes(node)).map(isLinked))).every(Boolean),
  )
  const master = await busiest(before)
  const replicas = await replicasOf(trial, master)
  for (const replica of replicas) replica.pause()
  await onNode(master, (redis) => redis.call('CLIENT', 'KILL', 'TYPE', 'replica'))
  await trial.underLoad(60)
  const written = await offset(master, 'master_repl_offset')
  await master.kill()
  for (const replica of replicas) replica.resume()
  let promoted: RedisNode | undefined
  await until('another one is master', async () => {
    const masters = await place.masters()
    promoted = masters.find((node) => !before.includes(node))
    return masters.length === before.length && promoted !== undefined
  })
  const lag = written - (await offset(promoted as RedisNode, 'second_repl_offset'))
  await master.restart()
  // Sentinel would see to it as well, ten seconds later; a Cluster does so at once.
  if (place.topology === 'sentinel')
    await onNode(master, (redis) => redis.replicaof('127.0.0.1', (promoted as RedisNode).port))
  await until('the old master follows', () => isLinked(master))
  return lag
}

/** A replica takes over in good order: the old master lives, and so do the connections to it. */
export async function handOver(trial: Trial): Promise<void> {
  const { place } = trial
  const before = await mastersOf(trial)
  let askedAt = Number.NEGATIVE_INFINITY
  await until('another one is master', async () => {
    // Sentinels may still be busy with the last time; and a replica that does not catch up within five seconds gives up, and says nothing.
    if (performance.now() - askedAt > ASK_AGAIN_MS) {
      await place.promote()
      askedAt = performance.now()
    }
    return (await place.masters()).some((node) => !before.includes(node))
  })
  await until('the old master follows', async () => {
    const masters = await place.masters()
    const old = before.filter((node) => !masters.includes(node))
    return (await Promise.all(old.map(isLinked))).every(Boolean)
  })
}

async function offset(node: RedisNode, name: string): Promise<number> {
  return Number(new RegExp(`${name}:(\\d+)`).exec(await replication(node))?.[1])
}

async function replicasOf({ place }: Trial, master: RedisNode): Promise<RedisNode[]> {
  const info = await replication(master)
  return place.nodes.filter(({ port }) => info.includes(`port=${port},`))
}

/** The script runs, and its reply does not arrive. */
export async function cutReplies(trial: Trial, times = 10): Promise<void> {
  for (let n = 0; n < times; n += 1) {
    const { redisProxies } = trial.wayOf(trial.anyWorker())
    const cuts = redisProxies.map((proxy) => proxy.cutReplyTo(walletDecide.sha1))
    // A replica's is never asked.
    await Promise.race([...cuts, sleep(CUT_WITHIN_MS)])
    for (const proxy of redisProxies) proxy.behave()
  }
}

/** @returns how many */
export async function moveSomeSlots(trial: Trial): Promise<number> {
  const slots = await moveSlots(await mastersOf(trial), trial.chance, 12)
  return slots.length
}

export async function killWorker(trial: Trial): Promise<void> {
  await trial.replace(trial.anyWorker())
}

/** Stopped just when it is about to append what Redis has decided; what it was about to send is lost. Wakes up much later. */
export async function stopBetweenDecideAndAppend(trial: Trial, worker: Worker, forMs: number): Promise<void> {
  const { postgresProxy } = trial.wayOf(worker)
  await postgresProxy.holdAt('holdfast_append')
  worker.pause()
  postgresProxy.cut()
  postgresProxy.behave()
  await sleep(forMs)
  worker.resume()
}

/** Without a shutdown, as `pg_ctl stop -m immediate` does it, only harder. */
export async function crashPostgres(trial: Trial, forMs: number): Promise<void> {
  await trial.place.postgres.kill()
  await sleep(forMs)
  await trial.place.postgres.restart()
}

export async function stopRedis(trial: Trial, forMs: number): Promise<void> {
  const { nodes } = trial.place
  for (const node of nodes) node.pause()
  await sleep(forMs)
  for (const node of nodes) node.resume()
  await mastersOf(trial)
}

export async function cutOff(trial: Trial, worker: Worker, forMs: number): Promise<void> {
  const { redisProxies } = trial.wayOf(worker)
  for (const proxy of redisProxies) proxy.refuse()
  await sleep(forMs)
  for (const proxy of redisProxies) proxy.behave()
}

/** Of the random run, which takes them in an order that its seed decides. */
export const FAULTS: readonly Fault[] = [
  { name: 'FLUSHALL', topologies: TOPOLOGIES, inflict: flushAll },
  { name: 'keys deleted', topologies: TOPOLOGIES, inflict: deleteKeys },
  { name: 'keys evicted', topologies: TOPOLOGIES, inflict: async (trial) => void (await evictKeys(trial)) },
  { name: 'replies cut off', topologies: TOPOLOGIES, inflict: cutReplies },
  { name: 'worker killed', topologies: TOPOLOGIES, inflict: killWorker },
  {
    name: 'worker stopped between decide and append, 5 s',
    topologies: TOPOLOGIES,
    inflict: (trial) => stopBetweenDecideAndAppend(trial, trial.anyWorker(), 5_000),
  },
  {
    name: 'worker cut off from Redis, 3 s',
    topologies: TOPOLOGIES,
    inflict: (trial) => cutOff(trial, trial.anyWorker(), 3_000),
  },
  { name: 'Postgres crashed, 3 s', topologies: TOPOLOGIES, inflict: (trial) => crashPostgres(trial, 3_000) },
  { name: 'Redis stopped, 4 s', topologies: TOPOLOGIES, inflict: (trial) => stopRedis(trial, 4_000) },
  { name: 'old snapshot put back', topologies: TOPOLOGIES, inflict: restoreOldSnapshot },
  { name: 'demoted, and promoted with an older state', topologies: ['single'], inflict: demoteAndPromote },
  {
    name: 'failover to a replica that lags',
    topologies: ['sentinel', 'cluster'],
    inflict: async (trial) => void (await failOverToLaggingReplica(trial)),
  },
  { name: 'a replica takes over from a living master', topologies: ['sentinel', 'cluster'], inflict: handOver },
  { name: 'slots moved', topologies: ['cluster'], inflict: async (trial) => void (await moveSomeSlots(trial)) },
]
