import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { built } from '../../test/servers.js'
import type { FallbackData } from '../fallback/suite.js'
import { bench } from './command.js'

describe('npm run bench -- fallback', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-test-'))
  const json = join(folder, 'figures.json')
  let data: FallbackData

  beforeAll(async () => {
    await built()
    const { code, output } = await bench('fallback', '--smoke', '--report', folder, '--json', json)
    expect(output).not.toContain('FAILED')
    expect(code).toBe(0)
    data = JSON.parse(readFileSync(json, 'utf8')).fallback
  }, 120_000)
  afterAll(() => rmSync(folder, { recursive: true }))

  it('keeps an entry for every operation that it acknowledged, with Redis and without', () => {
    expect(data.checks.map(({ contender }) => contender)).toEqual(['ledger', 'fallback'])
    for (const { acknowledged, entries, money } of data.checks) {
      expect(acknowledged).toBeGreaterThan(0)
      expect(entries).toBe(acknowledged)
      expect(money).toBe('conserved')
    }
  })

  it('sets one against the other in every scenario', () => {
    expect(data.scenarios.map(({ spread, processes }) => [spread, processes])).toEqual([
      ['many', 1],
      ['hot', 2],
    ])
    for (const { normal, fallback, ratio } of data.scenarios) {
      expect(ratio.median).toBeCloseTo(fallback.pairsPerSecond.median / normal.pairsPerSecond.median)
      expect([fallback.refusedHolds, fallback.refusedSettles]).toEqual([0, 0])
      expect(fallback.cpuUsPerOperation.redis).toBe(0)
      expect(fallback.p99Ms.median).toBeGreaterThanOrEqual(fallback.p50Ms.median)
    }
  })

  it('writes a report', () => {
    const markdown = readFileSync(join(folder, 'fallback.md'), 'utf8')
    expect(markdown.split('\n').filter((line) => /^\| 8, /.test(line))).toHaveLength(4)
  })
})
