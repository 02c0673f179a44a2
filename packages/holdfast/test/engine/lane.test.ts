import { expect, it } from 'vitest'
import { Lane } from '../../src/engine/lane.js'
import { command, decide } from '../../src/machine/index.js'
import { Keys } from '../../src/redis/index.js'
import type { PendingRun } from '../../src/sequencer/index.js'
import { emptyState } from '../machine/oracle.js'

const place = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 7), shards: 1 }).of('w')

/** What a server says of a wallet in which it has decided so much since it was loaded at `acked`. */
function run(life: string, acked: number, ...keys: string[]): PendingRun {
  const state = { ...emptyState('0'.repeat(40)), epoch: 5, seq: acked }
  const entries = keys.flatMap((key) => decide(state, command({ kind: 'credit', key, amount: 1 }), 1).entries)
  return { life, epoch: 5, acked, entries }
}

it('takes what one server has in the journal for nothing that another one has, though both call it the same epoch', () => {
  const lane = new Lane(place)
  // One of them was loaded by a raise that Postgres has lost since, and the other by the raise after that.
  const [first, second] = lane.learn(run('one', 27, 'a', 'b'))
  const others = lane.learn(run('other', 27, 'c'))
  expect(others.map(({ entry }) => entry.key)).toEqual(['c'])
  for (const item of [first, second]) if (item) lane.acknowledge(item)
  expect(lane).toMatchObject({ life: 'other', epoch: 5, acked: 27, known: 28 })
  expect([...lane.items.values()]).toEqual(others)
  // And back again: what it has decided before is brought once more, and gets its verdict once more.
  expect(lane.learn(run('one', 27, 'a', 'b'))).toMatchObject([{ life: 'one' }, { life: 'one' }])
})

it('is brought each entry of a server once', () => {
  const lane = new Lane(place)
  const [first] = lane.learn(run('one', 27, 'a'))
  expect(lane.learn(run('one', 27, 'a', 'b')).map(({ entry }) => entry.key)).toEqual(['b'])
  if (first) lane.acknowledge(first)
  expect(lane).toMatchObject({ acked: 28, known: 29 })
})
