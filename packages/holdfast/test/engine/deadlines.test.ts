import { expect, it } from 'vitest'
import { Attempt } from '../../src/engine/attempt.js'
import { Deadlines } from '../../src/engine/deadlines.js'
import { Lane } from '../../src/engine/lane.js'
import type { HoldfastError } from '../../src/errors/index.js'
import { command } from '../../src/machine/index.js'
import { Keys } from '../../src/redis/index.js'
import { TestClock } from './support/clock.js'

const USUAL_MS = 100
const lane = new Lane(new Keys({ tenant: 'test', secret: Buffer.alloc(32, 7), shards: 1 }).of('w'))

function set() {
  const clock = new TestClock()
  const deadlines = new Deadlines(clock, USUAL_MS)
  const heard: string[] = []
  const begin = (name: string, timeoutMs = USUAL_MS): Attempt => {
    const attempt = new Attempt(
      lane,
      command({ kind: 'touch' }),
      { memory: false, deadline: clock.now() + timeoutMs, retry: false },
      {
        answered: (one) => deadlines.remove(one),
        resolve: () => heard.push(`${name} yes at ${clock.now()}`),
        reject: (error: HoldfastError) => heard.push(`${name} ${error.code} ${error.timeoutMs} at ${clock.now()}`),
      },
    )
    deadlines.add(attempt, timeoutMs)
    return attempt
  }
  const accept = (attempt: Attempt) => attempt.accept(null, false, 'ledger')
  return { clock, deadlines, heard, begin, accept }
}

it('ends each attempt when its own time is over, with one timer for all that wait equally long', () => {
  const { clock, heard, begin } = set()
  begin('a')
  clock.pass(30)
  begin('b')
  begin('c')
  expect(clock.timers).toHaveLength(1)
  clock.pass(1_000)
  expect(heard).toEqual(['a timeout 100 at 1100', 'b timeout 100 at 1130', 'c timeout 100 at 1130'])
  expect(clock.timers).toEqual([])
})

it('gives an attempt with a time of its own a timer of its own', () => {
  const { clock, heard, begin, accept } = set()
  begin('usual')
  begin('short', 10)
  accept(begin('answered', 20))
  expect(clock.timers).toHaveLength(2)
  clock.pass(1_000)
  expect(heard).toEqual(['answered yes at 1000', 'short timeout 10 at 1010', 'usual timeout 100 at 1100'])
})

it('forgets who was answered, wherever in the line it stood', () => {
  const { clock, heard, begin, accept } = set()
  const [first, , middle, , last] = ['first', 'b', 'middle', 'd', 'last'].map((name) => begin(name))
  for (const attempt of [middle, first, last]) accept(attempt as Attempt)
  clock.pass(40)
  accept(begin('late'))
  clock.pass(1_000)
  const times = ['b timeout 100 at 1100', 'd timeout 100 at 1100']
  expect(heard).toEqual(['middle yes at 1000', 'first yes at 1000', 'last yes at 1000', 'late yes at 1040', ...times])
})

it('begins anew when the line was empty for a while', () => {
  const { clock, heard, begin, accept } = set()
  accept(begin('a'))
  clock.pass(50)
  begin('b')
  clock.pass(99)
  expect(heard).toEqual(['a yes at 1000'])
  clock.pass(1)
  expect(heard).toEqual(['a yes at 1000', 'b timeout 100 at 1150'])
})

it('leaves no timer behind when it is closed', () => {
  const { clock, deadlines, begin, accept } = set()
  accept(begin('a'))
  deadlines.close()
  expect(clock.timers).toEqual([])
})
