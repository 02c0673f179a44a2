import type { RedisNode } from '@holdfast/services'
import type { Redis } from 'ioredis'
import type { Chance } from '../sim/world.js'
import { onNode } from './places.js'

/** Moves some of the slots that have keys from one master to another, key by key, as resharding does. @returns the slots */
export async function moveSlots(masters: readonly RedisNode[], chance: Chance, most: number): Promise<number[]> {
  const slots = await Promise.all(masters.map((node) => onNode(node, slotsWithKeys)))
  // Of few wallets there may be none on one of them.
  const from = chance.pick(masters.filter((_, at) => slots[at]?.length))
  const to = chance.pick(masters.filter((node) => node !== from))
  const moved = slots[masters.indexOf(from)]?.slice(0, most) ?? []
  for (const slot of moved) await moveSlot(slot, from, to, masters)
  return moved
}

async function slotsWithKeys(redis: Redis): Promise<number[]> {
  const slots = new Set<number>()
  for (const key of await redis.keys('hf:*:wallet:*')) slots.add(await redis.cluster('KEYSLOT', key))
  return [...slots]
}

async function moveSlot(slot: number, from: RedisNode, to: RedisNode, masters: readonly RedisNode[]): Promise<void> {
  const idOf = (node: RedisNode) => onNode(node, (redis) => redis.cluster('MYID') as Promise<string>)
  const [fromId, toId] = await Promise.all([idOf(from), idOf(to)])
  await onNode(to, (redis) => redis.cluster('SETSLOT', slot, 'IMPORTING', fromId))
  await onNode(from, async (redis) => {
    await redis.cluster('SETSLOT', slot, 'MIGRATING', toId)
    for (;;) {
      const keys = (await redis.cluster('GETKEYSINSLOT', slot, 10)) as string[]
      if (keys.length === 0) break
      for (const key of keys) await redis.call('MIGRATE', '127.0.0.1', to.port, key, 0, 20_000, 'REPLACE')
    }
  })
  // First the one that gets it: asked by somebody who has heard of it already, it must know that it is the owner.
  for (const node of [to, from, ...masters.filter((one) => one !== to && one !== from)])
    await onNode(node, (redis) => redis.cluster('SETSLOT', slot, 'NODE', toId))
}
