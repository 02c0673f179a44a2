import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { built } from '../../test/servers.js'
import { WORKS } from '../primitives/contenders/index.js'
import { PLANS } from '../primitives/plan.js'
import { failuresOf, type PrimitivesData } from '../primitives/suite.js'
import { bench } from './command.js'

describe('npm run bench -- primitives', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-test-'))
  const json = join(folder, 'figures.json')
  let data: PrimitivesData

  beforeAll(async () => {
    await built()
    const { code, output } = await bench('primitives', '--smoke', '--report', folder, '--json', json)
    expect(output).not.toContain('FAILED')
    expect(code).toBe(0)
    data = JSON.parse(readFileSync(json, 'utf8')).primitives
  }, 120_000)
  afterAll(() => rmSync(folder, { recursive: true }))

  it('finds that everybody made what callers were told', () => {
    expect(new Set(data.checks.map(({ work }) => work))).toEqual(new Set(WORKS.map(({ name }) => name)))
    expect(data.checks.filter(({ wrong }) => wrong !== null)).toEqual([])
  })

  it('measures each with each number of callers, and sets Holdfast against the others', () => {
    for (const { name, isShared } of WORKS) {
      const cells = data.cells.filter(({ work }) => work === name)
      expect([...new Set(cells.map(({ callers }) => callers))]).toEqual(isShared ? PLANS.smoke.callers : [1])
      expect(cells[0]?.holdfast).toBeNull()
    }
    for (const { perSecond, holdfast } of data.cells) {
      expect(perSecond.median).toBeGreaterThan(0)
      if (holdfast) expect(holdfast.timesFaster.median).toBeGreaterThan(0)
    }
  })

  it('writes a report', () => {
    const markdown = readFileSync(join(folder, 'primitives.md'), 'utf8')
    expect(markdown.split('\n').filter((line) => /^\| \d+ \| /.test(line))).toHaveLength(data.cells.length)
    for (const { title } of WORKS) expect(markdown).toContain(`## ${title}`)
  })
})

it('a run that made more or less than callers were told fails', () => {
  const check = (wrong: string | null) => failuresOf({ checks: [{ work: 'window', title: 'FixedWindow', wrong }] })
  expect(check(null)).toEqual([])
  expect(check('10 told, 11 made')).toEqual(['primitives: window: FixedWindow: 10 told, 11 made'])
})
