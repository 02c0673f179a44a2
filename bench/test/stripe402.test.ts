import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { built } from '../../test/servers.js'
import { failuresOf, type Stripe402Data } from '../stripe402/suite.js'
import { bench } from './command.js'

describe('npm run bench -- stripe402', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-test-'))
  const json = join(folder, 'figures.json')
  let data: Stripe402Data

  beforeAll(async () => {
    await built()
    const { code, output } = await bench('stripe402', '--smoke', '--report', folder, '--json', json)
    expect(output).not.toContain('FAILED')
    expect(code).toBe(0)
    data = JSON.parse(readFileSync(json, 'utf8')).stripe402
  }, 120_000)
  afterAll(() => rmSync(folder, { recursive: true }))

  it('finds that the clients lack exactly what callers were told', () => {
    expect(data.checks.map(({ contender }) => contender)).toEqual(['published', 'store', 'keyed'])
    for (const { told, missing } of data.checks) {
      expect(told).toBeGreaterThan(0)
      expect(missing).toBe(told)
    }
  })

  it('measures each way with each number of callers, on spread and on hot clients', () => {
    expect(data.cells).toHaveLength(2 * 2 * 3)
    for (const { perSecond, timesFaster } of data.cells) {
      expect(perSecond.median).toBeGreaterThan(0)
      expect(timesFaster.median).toBeGreaterThan(0)
    }
  })

  it('writes a report', () => {
    const markdown = readFileSync(join(folder, 'stripe402.md'), 'utf8')
    expect(markdown.split('\n').filter((line) => /^\| (spread|hot) /.test(line))).toHaveLength(12)
  })
})

it('a run that took more or less than callers were told fails', () => {
  const check = (told: number, missing: number) => failuresOf({ checks: [{ contender: 'store', told, missing }] })
  expect(check(10, 10)).toEqual([])
  expect(check(10, 11)).toEqual(['stripe402: store: 10 deductions told, 11 made'])
  expect(check(0, 0)).toEqual(['stripe402: store: 0 deductions told, 0 made'])
})
