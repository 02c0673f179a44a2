import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { built } from '../../test/servers.js'
import { type Cell, failuresOf, type SalesData } from '../sales/suite.js'
import { bench } from './command.js'

describe('npm run bench -- sales', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-test-'))
  const json = join(folder, 'figures.json')
  let data: SalesData

  beforeAll(async () => {
    await built()
    const { code, output } = await bench('sales', '--smoke', '--commit-delay', '1', '--report', folder, '--json', json)
    expect(output).not.toContain('FAILED')
    expect(code).toBe(0)
    data = JSON.parse(readFileSync(json, 'utf8')).sales
  }, 120_000)
  afterAll(() => rmSync(folder, { recursive: true }))

  it('sets sales against one transaction a purchase, and larger ones against the first', () => {
    expect(data.cells.map(({ way, items, parts }) => `${way} ${items} ${parts}`)).toEqual([
      'rowlock 20 1',
      'rowlock 20 2',
      'sale 20 1',
      'sale 60 1',
      'sale 20 3',
    ])
    const [plain, steps, sale] = data.cells as [Cell, Cell, Cell]
    expect(sale.ratio.median).toBeCloseTo(sale.purchasesPerSecond.median / plain.purchasesPerSecond.median)
    expect(sale.ratioToSteps.median).toBeCloseTo(sale.purchasesPerSecond.median / steps.purchasesPerSecond.median)
    expect(sale.growth.median).toBe(1)
  })

  it('says what it expects of an option', async () => {
    const { code, output } = await bench('sales', '--smoke', '--commit-delay', '1.5')
    expect({ code, output }).toEqual({ code: 1, output: expect.stringContaining('expected an integer from 0 to 100') })
  })

  it('sold what callers were told', () => {
    for (const { acknowledged, sold } of data.cells) expect(sold).toBe(acknowledged)
  })

  it('loads every sale anew', () => {
    for (const { loading } of data.cells.filter(({ way }) => way === 'sale')) {
      expect(loading?.takenItems).toBeGreaterThan(0)
    }
  })
})

it('a run in which something was sold that nobody was told of fails', () => {
  const cell = { title: 'a sale', acknowledged: 10 } as Cell
  expect(failuresOf({ cells: [{ ...cell, sold: 11 }] })).toEqual([
    'a sale: 10 purchases were acknowledged, 11 are on record',
  ])
  expect(failuresOf({ cells: [{ ...cell, acknowledged: 0, sold: 0 }] })).toEqual(['a sale: nothing was bought'])
})
