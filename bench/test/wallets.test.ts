import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { built } from '../../test/servers.js'
import { Latencies } from '../harness/latency.js'
import { measured, ratio } from '../harness/statistics.js'
import { PLANS } from '../wallets/plan.js'
import { failuresOf, type WalletsData } from '../wallets/suite.js'
import { bench } from './command.js'

describe('npm run bench -- wallets', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-test-'))
  const json = join(folder, 'figures.json')
  let data: WalletsData

  beforeAll(async () => {
    await built()
    const { code, output } = await bench('wallets', '--smoke', '--report', folder, '--json', json)
    expect(output).not.toContain('FAILED')
    expect(code).toBe(0)
    data = JSON.parse(readFileSync(json, 'utf8')).wallets
  }, 120_000)
  afterAll(() => rmSync(folder, { recursive: true }))

  it('keeps an entry for every operation that it acknowledged, and all the money', () => {
    const contenders = new Set(PLANS.smoke.scenarios.flatMap(({ contenders }) => contenders))
    expect(data.checks.map(({ contender }) => contender).sort()).toEqual([...contenders].sort())
    for (const { contender, acknowledged, entries, money } of data.checks) {
      expect(acknowledged).toBeGreaterThan(0)
      expect(entries).toBe(acknowledged)
      expect(money).toBe(contender === 'roundtrip' ? 'not kept' : 'conserved')
    }
  })

  it('measures everybody in every scenario, also over two engine processes', () => {
    expect(data.scenarios.map(({ processes, spread }) => [processes, spread])).toEqual([
      [1, 'many'],
      [2, 'hot'],
    ])
    for (const [at, { results, ratios }] of data.scenarios.entries()) {
      // How much each got done is not asked: on a machine that has too much to do a round may be over before its first pair is.
      expect(results.map(({ contender }) => contender)).toEqual(PLANS.smoke.scenarios[at]?.contenders)
      for (const { p50Ms, p99Ms } of results) {
        expect(p99Ms.median).toBeGreaterThanOrEqual(p50Ms.median)
      }
      expect(ratios.map(({ of, to }) => `${of}:${to}`)).toContain('ledger:rowlock')
    }
    expect(data.loneCallers.map(({ ratio }) => ratio.median > 0)).toEqual([true])
  })

  it('tells the room that a wallet takes, and on what it ran', () => {
    expect(data.memory?.bytesPerWallet).toBeGreaterThan(100)
    expect(data.memory?.bytesPerOpenHold).toBeGreaterThan(10)
    expect(data.tableBytesPerOperation.ledger).toBeGreaterThan(0)
    expect(data.servers.postgres).toMatchObject({ fsync: 'on', synchronous_commit: 'on' })
    expect(data.machine.cores).toBeGreaterThan(0)
  })

  it('writes a report whose pictures are there', () => {
    const markdown = readFileSync(join(folder, 'wallets.md'), 'utf8')
    const files = readdirSync(folder)
    expect(files).toContain('wallets.json')
    for (const [, file] of markdown.matchAll(/!\[[^\]]*\]\(([^)]+)\)/g)) expect(files).toContain(file)
    expect(markdown).toContain('Was the work done?')
  })
})

describe('the books', () => {
  const right = { contender: 'ledger', acknowledged: 10, entries: 10, money: 'conserved' } as const

  it.each([
    [{ acknowledged: 0, entries: 0 }, 'ledger did nothing'],
    [{ entries: 9 }, 'ledger: 10 operations acknowledged, 9 entries kept'],
    [{ entries: 11 }, 'ledger: 10 operations acknowledged, 11 entries kept'],
    [{ money: '70 missing' as const }, 'ledger: 70 missing'],
  ])('fail a run with %j', (wrong, message) => {
    expect(failuresOf([right])).toEqual([])
    expect(failuresOf([{ ...right, ...wrong }])).toEqual([message])
  })
})

describe('the command', () => {
  it.each([
    [
      ['sails'],
      'suite: expected append, audit, fallback, growth, http, import, primitives, sales, sold, stripe402, wallets, got sails',
    ],
    [['--fast'], "Unknown option '--fast'"],
    [['--quick', '--smoke'], 'Expected one of --quick and --smoke, got both'],
  ])('refuses %j and says why', async (args, message) => {
    await built()
    const { code, output } = await bench(...args)
    expect(code).toBe(1)
    expect(output).toContain(message)
  })
})

describe('figures', () => {
  it('finds percentiles within a percent, over several processes', () => {
    const [one, other] = [new Latencies(), new Latencies()]
    for (let ms = 1; ms <= 500; ms += 1) one.record(ms)
    for (let ms = 501; ms <= 1_000; ms += 1) other.record(ms)
    one.add(other)
    expect(one.percentile(50)).toBeGreaterThan(494)
    expect(one.percentile(50)).toBeLessThan(506)
    expect(one.percentile(99)).toBeGreaterThan(980)
    expect(one.percentile(99)).toBeLessThan(1_000)
    expect(new Latencies().percentile(50)).toBeNaN()
  })

  it('compares round by round, so that noise that met both cancels out', () => {
    const fast = measured([100, 50, 100])
    const slow = measured([10, 5, 10])
    expect(ratio(fast, slow)).toEqual({ median: 10, min: 10, max: 10, rounds: [10, 10, 10] })
  })
})
