import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { built } from '../../test/servers.js'
import type { SoldData } from '../sold/suite.js'
import { bench } from './command.js'

describe('npm run bench -- sold', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-test-'))
  const json = join(folder, 'figures.json')
  let data: SoldData

  beforeAll(async () => {
    await built()
    const { code, output } = await bench('sold', '--smoke', '--report', folder, '--json', json)
    expect(output).not.toContain('FAILED')
    expect(code).toBe(0)
    data = JSON.parse(readFileSync(json, 'utf8')).sold
  }, 120_000)
  afterAll(() => rmSync(folder, { recursive: true }))

  it('refuses in all ways, and sets each against the engine', () => {
    const [sale] = data.sales
    expect(sale?.ways.map(({ way }) => way)).toEqual(['none', 'bitmap', 'bloom'])
    for (const { refusalsPerSecond, ratio } of sale?.ways ?? []) {
      expect(refusalsPerSecond.median).toBeGreaterThan(0)
      expect(ratio.median).toBeGreaterThan(0)
    }
    expect(sale?.filters).toMatchObject({ bitmapBytes: 51, fresh: 200 })
  })

  it('writes a report', () => {
    const markdown = readFileSync(join(folder, 'sold.md'), 'utf8')
    expect(markdown.split('\n').filter((line) => /^\| 400 \|/.test(line))).toHaveLength(4)
  })
})
