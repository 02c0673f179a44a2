import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { built } from '../../test/servers.js'
import { failuresOf, type ImportData, type Row } from '../import/suite.js'
import { bench } from './command.js'

describe('npm run bench -- import', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-test-'))
  const json = join(folder, 'figures.json')
  let data: ImportData

  beforeAll(async () => {
    await built()
    const { code, output } = await bench('import', '--smoke', '--report', folder, '--json', json)
    expect(output).not.toContain('FAILED')
    expect(code).toBe(0)
    data = JSON.parse(readFileSync(json, 'utf8')).import
  }, 120_000)
  afterAll(() => rmSync(folder, { recursive: true }))

  it('takes every client and transaction from either', () => {
    expect(data.rows.map(({ source }) => source)).toEqual([...Array(4).fill('Redis'), ...Array(4).fill('Postgres')])
    for (const { clients, transactions, leftOut } of data.rows) {
      expect({ clients, transactions, leftOut }).toEqual({ clients: 60, transactions: 240, leftOut: 0 })
    }
  })

  it('tells how much memory and processor time it took', () => {
    for (const { peakMb, seconds } of data.rows) {
      expect(peakMb).toBeGreaterThan(20)
      expect(seconds).toBeGreaterThan(0)
    }
  })
})

it('a run in which something stayed behind fails', () => {
  const row = { source: 'Redis', command: 'stripe402 import', code: 0, clients: 10, transactions: 40 } as Row
  const rows = [row, { ...row, transactions: 39 }, { ...row, code: 1 }]
  expect(failuresOf({ plan: { clients: 10, transactions: 4 }, rows })).toEqual([
    'import: stripe402 import from Redis: expected 10 clients with 40 transactions, got 10 with 39 and exit code 0',
    'import: stripe402 import from Redis: expected 10 clients with 40 transactions, got 10 with 40 and exit code 1',
  ])
})
