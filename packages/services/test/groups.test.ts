import { startRedisCluster, startRedisSentinel } from '@holdfast/services'
import { Cluster, Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { alive, until } from './parent.js'

test('a Sentinel group promotes a replica when its master is killed', async () => {
  const group = await startRedisSentinel({ downAfterMs: 3_000 })
  const client = new Redis({ sentinels: [...group.sentinels], name: group.name })
  // Connections break here on purpose.
  client.on('error', () => {})
  const pids = [...group.nodes, ...group.sentinelNodes].map((node) => node.pid as number)
  try {
    const [master] = group.nodes
    expect(await group.masterPort()).toBe(master?.port)
    await client.set('key', 'before')
    expect(await client.wait(2, 30_000)).toBe(2)

    await master?.kill()
    await until(async () => ![undefined, master?.port].includes(await group.masterPort()))
    await client.set('key', 'after')
    expect(await client.get('key')).toBe('after')
  } finally {
    client.disconnect()
    await group.stop()
  }
  expect(alive(pids)).toEqual([])
})

test('a Cluster promotes a replica when a master is killed', async () => {
  const cluster = await startRedisCluster({ nodeTimeoutMs: 3_000 })
  const client = new Cluster([...cluster.addresses])
  const pids = cluster.nodes.map((node) => node.pid as number)
  try {
    const slot = await client.cluster('KEYSLOT', 'key')
    const master = await cluster.masterOfSlot(slot)
    expect(cluster.nodes.slice(0, 3)).toContain(master)
    await client.set('key', 'before')

    await master.kill()
    await until(async () => (await cluster.masterOfSlot(slot).catch(() => master)) !== master)
    expect(cluster.nodes.slice(3)).toContain(await cluster.masterOfSlot(slot))
    // The others may hear of it a little later than the one that was asked.
    await until(async () => (await client.set('key', 'after').catch(() => null)) === 'OK')
    expect(await client.get('key')).toBe('after')
  } finally {
    client.disconnect()
    await cluster.stop()
  }
  expect(alive(pids)).toEqual([])
})
