import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { built } from '../../test/servers.js'
import { type AuditData, failuresOf } from '../audit/suite.js'
import { bench } from './command.js'

describe('npm run bench -- audit', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-test-'))
  const json = join(folder, 'figures.json')
  let data: AuditData

  beforeAll(async () => {
    await built()
    const { code, output } = await bench('audit', '--smoke', '--report', folder, '--json', json)
    expect(output).not.toContain('FAILED')
    expect(code).toBe(0)
    data = JSON.parse(readFileSync(json, 'utf8')).audit
  }, 120_000)
  afterAll(() => rmSync(folder, { recursive: true }))

  it('audits every wallet, and reads its journal the first time only', () => {
    expect(data.first).toMatchObject({ wallets: 210, entries: 210, found: 0 })
    expect(data.second).toMatchObject({ wallets: 510, entries: 0, found: 0 })
  })

  it('audits the stock of a sale', () => {
    expect(data.sale).toMatchObject({ hot: 1, fields: 205, found: 0 })
  })

  it('measures callers with and without audits beside them', () => {
    expect(data.beside.map(({ company }) => company)).toEqual(['none', 'usual', 'constant'])
    for (const { pairsPerSecond, ratio } of data.beside) {
      expect(pairsPerSecond.median).toBeGreaterThan(0)
      expect(ratio.median).toBeGreaterThan(0)
    }
    const [none, , constant] = data.beside
    expect(none?.auditedPerSecond.median).toBe(0)
    expect(constant?.auditedPerSecond.median).toBeGreaterThan(0)
  })
})

it('a run that audited less than there is, or found something, fails', () => {
  const plan = { wallets: 10, fresh: 10, hotWallets: 1 } as AuditData['plan']
  const alone = { wallets: 11, entries: 11, found: 0 } as AuditData['first']
  const sale = { hot: 1, found: 0 } as AuditData['sale']
  const run = { plan, first: alone, second: alone, sale, beside: [] }
  expect(failuresOf(run)).toEqual([])
  expect(failuresOf({ ...run, second: { ...alone, wallets: 10 } })).toEqual([
    'audit: expected 11 wallets to be audited, got 10',
  ])
  expect(failuresOf({ ...run, sale: { ...sale, hot: 0 } })).toEqual(['audit: expected one sale in Redis, got 0'])
  expect(failuresOf({ ...run, first: { ...alone, found: 1 } })).toEqual(['audit: expected no findings, got 1'])
})
