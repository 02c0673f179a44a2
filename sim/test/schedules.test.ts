import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Build, type Report } from './runs.js'

const SCHEDULES = 2_000
const PARTS = 2

/** What the engine must have been made to set right, or the schedules were too kind. */
const MUST_HAPPEN = [
  'stale',
  'gap',
  'untrusted_missing',
  'untrusted_incarnation',
  'untrusted_epoch',
  'replay',
  'seen',
  'take_over',
  'fallback',
  'help',
  'reload',
  'unfounded',
  'late',
  'unmarked',
]

let build: Build
beforeAll(async () => {
  build = await Build.of({ rule: 'none', patches: [] })
})
afterAll(() => build.remove())

describe('the engine in the simulator', () => {
  it(`keeps its word in ${SCHEDULES} schedules`, { timeout: 900_000 }, async () => {
    const each = SCHEDULES / PARTS
    const parts = await Promise.all(
      Array.from({ length: PARTS }, (_, part) => build.run('--seeds', `${each}`, '--from', `${1 + part * each}`)),
    )
    const counts: Record<string, number> = {}
    for (const { code, output, report } of parts) {
      expect(report.failures, output).toEqual([])
      expect(code).toBe(0)
      for (const [name, count] of Object.entries(report.counts)) counts[name] = (counts[name] ?? 0) + count
    }
    // Faults never stop while callers call; but who tries six times should mostly have got through.
    const heard = (name: string) => counts[`heard_${name}`] ?? 0
    expect(heard('unknown') / (heard('yes') + heard('no') + heard('unknown'))).toBeLessThan(0.1)
    for (const name of MUST_HAPPEN) expect(counts[name] ?? 0, name).toBeGreaterThan(0)
  })

  it('replays a seed exactly', { timeout: 60_000 }, async () => {
    const [first, second] = await Promise.all([
      build.run('--seeds', '1', '--from', '77'),
      build.run('--seeds', '1', '--from', '77'),
    ])
    const history = ({ output }: { output: string }) => output.split('\n').filter((line) => line.includes(' ms  '))
    expect(history(first).length).toBeGreaterThan(1_000)
    expect(history(first)).toEqual(history(second))
  })

  it('gives the same history to a seed whatever ran before it', { timeout: 60_000 }, async () => {
    const alone = await build.run('--seeds', '1', '--from', '24')
    const among = await build.run('--seeds', '5', '--from', '20')
    const without = await build.run('--seeds', '4', '--from', '20')
    const of = (report: Report, name: string) => report.counts[name] ?? 0
    for (const name of ['accepted', 'appended', 'rejected', 'reload', 'help']) {
      expect(of(among.report, name) - of(without.report, name), name).toBe(of(alone.report, name))
    }
  })
})
