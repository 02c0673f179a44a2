import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { built } from '../../test/servers.js'
import { type AppendData, failuresOf } from '../append/suite.js'
import { bench } from './command.js'

describe('npm run bench -- append', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-test-'))
  const json = join(folder, 'figures.json')
  let data: AppendData

  beforeAll(async () => {
    await built()
    const { code, output } = await bench('append', '--smoke', '--report', folder, '--json', json)
    expect(output).not.toContain('FAILED')
    expect(code).toBe(0)
    data = JSON.parse(readFileSync(json, 'utf8')).append
  }, 120_000)
  afterAll(() => rmSync(folder, { recursive: true }))

  it('finds every entry that it sent in the journal', () => {
    expect(data.sent).toBeGreaterThan(200)
    expect(data.kept).toBe(data.sent)
  })

  it('measures every size, on spread and on hot wallets', () => {
    const sizes = data.cells.map(({ place, entriesPerStatement }) => `${place} ${entriesPerStatement}`)
    expect(sizes).toEqual(['spread 1', 'spread 20', 'hot 1', 'hot 20'])
    for (const { nodeUs, walBytes } of data.cells) {
      expect(nodeUs.median).toBeGreaterThan(0)
      // A row of the journal takes more than this by itself.
      expect(walBytes.median).toBeGreaterThan(200)
    }
  })

  it('writes a report', () => {
    const markdown = readFileSync(join(folder, 'append.md'), 'utf8')
    expect(markdown.split('\n').filter((line) => /^\| (spread|hot) /.test(line))).toHaveLength(4)
  })
})

it('a run that kept less than it sent fails', () => {
  expect(failuresOf({ sent: 10, kept: 10 })).toEqual([])
  expect(failuresOf({ sent: 10, kept: 9 })).toEqual(['append: 10 entries sent, 9 kept'])
})
