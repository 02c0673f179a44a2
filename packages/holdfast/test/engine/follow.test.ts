import { beforeEach, describe, expect, it } from 'vitest'
import { Attempt } from '../../src/engine/attempt.js'
import { type Context, DEFAULT_OPTIONS } from '../../src/engine/context.js'
import { Lane } from '../../src/engine/lane.js'
import { Router, type Ways } from '../../src/engine/router.js'
import { command } from '../../src/machine/index.js'
import { Keys } from '../../src/redis/index.js'
import { TestClock } from './support/clock.js'

/** Which way a wallet goes that several decide for. Both servers are there, for this process. */
const place = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 7), shards: 1 }).of('w')
const SPELL_MS = DEFAULT_OPTIONS.postgresSpellMs
let clock: TestClock
let lane: Lane
let router: Router

beforeEach(() => {
  clock = new TestClock()
  lane = new Lane(place)
  const there = { open: false }
  const context = { clock, options: DEFAULT_OPTIONS, postgres: { stop: null }, redisAt: () => there }
  const ways = {
    decider: { add: () => ways.gone.push('redis') },
    fallback: { add: () => ways.gone.push('postgres'), refusalOf: () => null, crowdedOut: () => null },
    finder: { add: (_: Attempt, then: () => void) => then() },
    gone: [] as string[],
  }
  router = new Router(context as unknown as Context, ways as unknown as Ways)
  way = () => {
    router.route(attempt())
    return ways.gone.at(-1)
  }
})

let way: () => string | undefined
const nobody = { answered: () => {}, resolve: () => {}, reject: () => {} }
const attempt = () =>
  new Attempt(lane, command({ kind: 'touch' }), { memory: false, deadline: 1e9, retry: false }, nobody)

/** Its own take-over, as the Postgres path does it. */
const takeOver = (epoch: number) => {
  lane.distrust(epoch + 1)
  lane.joinsOnly = true
}

describe('a wallet that somebody else decides for', () => {
  it('goes where that one goes, and after a while back to Redis', () => {
    expect(way()).toBe('redis')
    router.follow(lane, 'postgres', 5)
    expect(way()).toBe('postgres')
    // There already, it only joins.
    expect(lane.joinsOnly).toBe(true)
    clock.pass(SPELL_MS)
    expect(way()).toBe('redis')
    router.follow(lane, 'postgres', 7)
    router.follow(lane, 'redis', 8)
    expect(way()).toBe('redis')
  })

  it('is taken over when two load it in turn, whatever else was lost at the same time', () => {
    lane.stales = 2
    lane.distrust(9)
    router.again(attempt())
    expect(way()).toBe('postgres')
    expect(lane.joinsOnly).toBe(false)
    // Another entry of the same batch, which was lost to the same load.
    router.follow(lane, 'redis', 9)
    expect(way()).toBe('postgres')
    takeOver(10)
    // And one that was looked at before the take-over.
    router.follow(lane, 'redis', 9)
    expect(way()).toBe('postgres')
    // This was loaded since.
    router.follow(lane, 'redis', 11)
    expect(way()).toBe('redis')
  })

  it('does not go back to where it was before it was loaded', () => {
    lane.distrust(12)
    router.follow(lane, 'postgres', 11)
    expect(way()).toBe('redis')
  })
})
