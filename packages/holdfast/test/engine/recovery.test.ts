import { expect, it } from 'vitest'
import { type Context, DEFAULT_OPTIONS } from '../../src/engine/context.js'
import { Recovery } from '../../src/engine/recovery.js'
import { TestClock } from './support/clock.js'

const { sweepEveryMs, transferGraceMs } = DEFAULT_OPTIONS

it('takes nothing for old that has a number from before Postgres was away: it may have been put back, and give numbers again', async () => {
  const clock = new TestClock()
  const postgres = { open: false }
  const claimed: number[] = []
  const recovery = new Recovery({ clock, options: DEFAULT_OPTIONS, postgres, telemetry: {} } as unknown as Context, [
    {
      name: 'payment',
      intents: {
        open: async () => [{ attempt: 7 }],
        claim: async (attempt) => {
          claimed.push(attempt)
          return null
        },
      },
      recover: async () => '',
    },
  ])
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += sweepEveryMs) {
      clock.pass(sweepEveryMs)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  recovery.start()
  await pass(2 * sweepEveryMs)
  postgres.open = true
  await pass(2 * transferGraceMs)
  postgres.open = false
  await pass(transferGraceMs / 2)
  expect(claimed).toEqual([])
  await pass(transferGraceMs)
  expect(claimed).toContain(7)
})
