import { afterEach, beforeEach, expect, it } from 'vitest'
import { type Context, DEFAULT_OPTIONS } from '../../src/engine/context.js'
import { Recovery } from '../../src/engine/recovery.js'
import { TestClock } from './support/clock.js'

const { sweepEveryMs, transferGraceMs, claimMax } = DEFAULT_OPTIONS

/** The numbers of those that are open, and of the next. */
let open: number[]
let next: number
let claimed: number[]
let clock: TestClock
let postgres: { open: boolean }
let recovery: Recovery
/** How each is recovered. */
let recover: (attempt: number) => Promise<string>

beforeEach(() => {
  open = []
  next = 1
  claimed = []
  clock = new TestClock()
  postgres = { open: false }
  recover = async () => ''
  recovery = new Recovery({ clock, options: DEFAULT_OPTIONS, postgres, telemetry: {} } as unknown as Context, [
    { name: 'payment', intents: { numbers, claim }, recover: ({ attempt }) => recover(attempt) },
  ])
  recovery.start()
})
afterEach(() => recovery.stop())

const begin = (count = 1) => open.push(...Array.from({ length: count }, () => next++))

const numbers = async () => (open.length > 0 ? { oldest: Math.min(...open), newest: Math.max(...open) } : null)

async function claim(upTo: number, most: number, except: readonly number[]) {
  const found = open.filter((attempt) => attempt <= upTo && !except.includes(attempt)).slice(0, most)
  open = open.filter((attempt) => !found.includes(attempt))
  claimed.push(...found)
  return found.map(() => ({ attempt: next++ }))
}

async function pass(ms: number) {
  for (let passed = 0; passed < ms; passed += sweepEveryMs) {
    clock.pass(sweepEveryMs)
    // What comes of it takes turns, and no time.
    for (let turn = 0; turn < 100; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve))
      clock.pass(0)
    }
  }
}

it('leaves alone what others may still be at work on', async () => {
  begin(claimMax)
  await pass(sweepEveryMs)
  begin(claimMax)
  await pass(transferGraceMs - sweepEveryMs)
  expect(claimed).toEqual([])
  await pass(sweepEveryMs)
  expect(claimed).toHaveLength(claimMax)
  await pass(sweepEveryMs)
  expect(claimed).toHaveLength(2 * claimMax)
})

it('takes all that are old one after another, however many they are, and so many at a time', async () => {
  begin(20 * claimMax)
  let [underWay, most] = [0, 0]
  recover = async () => {
    underWay += 1
    most = Math.max(most, underWay)
    await new Promise((resolve) => setImmediate(resolve))
    underWay -= 1
    return ''
  }
  await pass(transferGraceMs + sweepEveryMs)
  expect(claimed).toHaveLength(20 * claimMax)
  expect(most).toBe(claimMax)
})

it('takes others while some take all their time', async () => {
  begin(10 * claimMax)
  let stuck = claimMax - 1
  const release: (() => void)[] = []
  recover = async () => {
    stuck -= 1
    if (stuck >= 0) await new Promise<void>((resolve) => release.push(resolve))
    return ''
  }
  await pass(transferGraceMs + 10 * sweepEveryMs)
  expect(claimed).toHaveLength(10 * claimMax)
  expect(release).toHaveLength(claimMax - 1)
  for (const go of release) go()
})

it('does not take again what it is at work on itself, however long that takes', async () => {
  begin()
  let finish = () => {}
  recover = (attempt) =>
    new Promise((resolve) => {
      open = [attempt]
      finish = () => resolve('')
    })
  await pass(3 * transferGraceMs)
  expect(claimed).toEqual([1])
  finish()
  await pass(2 * sweepEveryMs)
  expect(claimed).toEqual([1, 2])
  finish()
})

it('takes for old what came to be seen late, if its number had been given long before', async () => {
  const late = next++
  begin()
  await pass(transferGraceMs)
  open.unshift(late)
  await pass(sweepEveryMs)
  expect(claimed).toEqual([late, late + 1])
})

it('takes nothing for old that has a number from before Postgres was away: it may have been put back, and give numbers again', async () => {
  begin(7)
  await pass(2 * sweepEveryMs)
  postgres.open = true
  await pass(2 * transferGraceMs)
  postgres.open = false
  await pass(transferGraceMs / 2)
  expect(claimed).toEqual([])
  await pass(transferGraceMs)
  expect(claimed).toContain(7)
})

it('takes nothing for old that a server may have given numbers again which nobody has asked before', async () => {
  begin(7)
  await pass(transferGraceMs - sweepEveryMs)
  recovery.forget()
  await pass(transferGraceMs - sweepEveryMs)
  expect(claimed).toEqual([])
  await pass(2 * sweepEveryMs)
  expect(claimed).toHaveLength(7)
})
