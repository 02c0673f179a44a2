import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { built } from '../../test/servers.js'
import { failuresOf, type GrowthData } from '../growth/suite.js'
import { bench } from './command.js'

describe('npm run bench -- growth', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-test-'))
  const json = join(folder, 'figures.json')
  let data: GrowthData

  beforeAll(async () => {
    await built()
    const { code, output } = await bench('growth', '--smoke', '--report', folder, '--json', json)
    expect(output).not.toContain('FAILED')
    expect(code).toBe(0)
    data = JSON.parse(readFileSync(json, 'utf8')).growth
  }, 120_000)
  afterAll(() => rmSync(folder, { recursive: true }))

  it('brings every wallet into Redis first', () => {
    expect(data.fillings.map(({ wallets }) => wallets)).toEqual([20, 60])
    for (const { redisBytesPerWallet } of data.fillings) expect(redisBytesPerWallet).toBeGreaterThan(100)
  })

  it('sets more of each against the least of it', () => {
    expect(data.cells.map(({ title }) => title)).toEqual([
      '20 of 20 in use',
      '1 open hold',
      '30 open holds',
      '20 of 60 in use',
      'all of 60 in use',
    ])
    for (const { axis, pairsPerSecond, ratio } of data.cells) {
      const first = data.cells.find((cell) => cell.axis === axis)?.pairsPerSecond.median as number
      expect(ratio.median).toBeCloseTo(pairsPerSecond.median / first)
    }
  })
})

it('a run in which wallets stayed out of Redis fails', () => {
  const plan = { wallets: [10, 20] } as unknown as GrowthData['plan']
  const filling = { loadedPerSecond: 1, redisBytesPerWallet: 1 }
  const fillings = [
    { ...filling, wallets: 10 },
    { ...filling, wallets: 19 },
  ]
  expect(failuresOf({ plan, fillings })).toEqual(['growth: expected 20 wallets to be loaded into Redis, got 19'])
})
