import { expect, it, vi } from 'vitest'
import { Attempt } from '../../src/engine/attempt.js'
import type { Confirmer } from '../../src/engine/confirmer.js'
import { type Context, DEFAULT_OPTIONS } from '../../src/engine/context.js'
import { Fallback } from '../../src/engine/fallback.js'
import { systemClock } from '../../src/engine/index.js'
import { Lane } from '../../src/engine/lane.js'
import { command } from '../../src/machine/index.js'
import { Keys } from '../../src/redis/index.js'
import { until } from '../api/support/paths.js'
import { emptyState } from '../machine/oracle.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 7), shards: 1 })
const nobody = { answered: () => {}, resolve: () => {}, reject: () => {} }

it('sends nobody on twice when Postgres fails after some of a batch were sent on', async () => {
  const sent: string[] = []
  const again = vi.fn((attempt: Attempt) => void sent.push(attempt.command.key))
  const owned = keys.of('owned')
  const context = {
    clock: systemClock,
    options: DEFAULT_OPTIONS,
    telemetry: {},
    postgres: { failedToWrite: () => {}, failedWith: () => {}, worked: () => {}, wrote: () => {} },
    redisAt: () => ({ open: false }),
    turnedAway: () => null,
    learnPostgresClock: () => {},
    again,
    route: again,
    journal: {
      takeOver: async (ref: string) =>
        ref === owned.ref ? { state: emptyState('0'.repeat(40)), memory: false, clock: Date.now() } : 'loaded',
      find: async () => {
        throw new Error('Postgres is away')
      },
    },
  }
  const fallback = new Fallback(context as unknown as Context, {} as Confirmer)
  for (const place of [keys.of('loaded'), owned]) {
    const key = place === owned ? 'owned' : 'loaded'
    const credit = command({ kind: 'credit', key, amount: 1 })
    const options = { memory: false, deadline: Number.POSITIVE_INFINITY, retry: false }
    fallback.add(new Attempt(new Lane(place), credit, options, nobody))
  }
  await until(() => sent.includes('owned'))
  expect(sent).toEqual(['loaded', 'owned'])
})
