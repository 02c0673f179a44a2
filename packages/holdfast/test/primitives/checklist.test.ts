/**
 * A primitive is done when its cases are tested, on a Cluster too, and its page has an example that runs and says what it costs, where it
 * ends and what happens without Redis. The table of that is written from what there is:
 *
 *   npx vitest run packages/holdfast/test/primitives/checklist.test.ts --update     writes docs/primitives/checklist.md
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { CASES, type Case, NOT_ARISING } from './support/cases.js'

const TESTS = fileURLToPath(new URL('.', import.meta.url))
const DOCS = fileURLToPath(new URL('../../../../docs/primitives', import.meta.url))
const HEADINGS = ['Cost', 'Limits', 'When Redis is away', 'Metrics'] as const

interface Row {
  readonly name: string
  readonly title: string
  readonly shown: ReadonlySet<string>
  readonly isOnCluster: boolean
  readonly hasExample: boolean
  readonly headings: readonly string[]
}

const names = readdirSync(DOCS)
  .filter((file) => file.endsWith('.md') && !['README.md', 'checklist.md', 'keys.md'].includes(file))
  .map((file) => file.slice(0, -'.md'.length))
const rows = names.map(rowOf)

/** Its tests: `<name>.test.ts`, and `<name>-….test.ts` of no other. */
function testsOf(name: string): string {
  const others = names.filter((other) => other.startsWith(`${name}-`))
  const files = readdirSync(TESTS).filter((file) => {
    const isOthers = others.some((other) => file === `${other}.test.ts` || file.startsWith(`${other}-`))
    return file === `${name}.test.ts` || (file.startsWith(`${name}-`) && file.endsWith('.test.ts') && !isOthers)
  })
  return files.map((file) => readFileSync(join(TESTS, file), 'utf8')).join('\n')
}

function rowOf(name: string): Row {
  const page = readFileSync(join(DOCS, `${name}.md`), 'utf8')
  const tests = testsOf(name)
  const titles = [...tests.matchAll(/\bit(?:\.each(?:<[^>]*>)?\(.*?\))?\(\s*['"`]([a-z0-9 ,]+): /gs)]
  return {
    name,
    title: /^# (.*)$/m.exec(page)?.[1] ?? name,
    shown: new Set(titles.flatMap(([, cases = '']) => cases.split(', '))),
    isOnCluster: /\bTOPOLOGIES\b|\bonCluster\b/.test(tests),
    hasExample: /^```ts run$/m.test(page),
    headings: HEADINGS.filter((heading) => page.includes(`\n## ${heading}\n`)),
  }
}

const reasonOf = ({ name }: Row, one: Case): string | undefined => NOT_ARISING[name]?.[one]

function lacks(row: Row): string[] {
  const cases = CASES.filter((one) => !row.shown.has(one) && reasonOf(row, one) === undefined)
  const headings = HEADINGS.filter((heading) => !row.headings.includes(heading))
  return [
    ...cases.map((one) => `a test of "${one}"`),
    ...(row.isOnCluster ? [] : ['a run on a Cluster']),
    ...(row.hasExample ? [] : ['an example that runs']),
    ...headings.map((heading) => `the part "${heading}" of its page`),
  ]
}

function checklist(): string {
  const columns = [...CASES, 'Cluster', 'example', 'cost, limits, away']
  const reasons: string[] = []
  const table = rows.map((row) => {
    const cells = CASES.map((one) => {
      if (row.shown.has(one)) return '✓'
      const reason = reasonOf(row, one)
      if (reason === undefined) return ''
      reasons.push(`${row.title}, ${one}: ${reason}.`)
      return `– ${reasons.length}`
    })
    const rest = [row.isOnCluster, row.hasExample, row.headings.length === HEADINGS.length].map((is) => (is ? '✓' : ''))
    return `| [${row.title}](${row.name}.md) | ${[...cells, ...rest].join(' | ')} |`
  })
  return [
    '# The checklist',
    '',
    'Written by a test from what there is: a mark stands for tests with that name, on real servers, or for a part of the page.',
    '',
    `| | ${columns.join(' | ')} |`,
    `|---|${columns.map(() => ':-:').join('|')}|`,
    ...table,
    '',
    'Does not arise:',
    '',
    ...reasons.map((reason, at) => `${at + 1}. ${reason}`),
    '',
    'What holds for all of them, because they are made of the same parts:',
    '',
    '| | |',
    '|---|---|',
    '| keys have owner, purpose, version, tenant and scope; what may be personal is hashed | `src/primitives/keys.ts`; the tests called *keys* |',
    '| an end is set in the same step as the value | the tests called *ttl present*, *ttl kept* and *expired*; the [sampler](keys.md#the-sampler) counts what has none |',
    '| what a second caller gets, and who finds nothing, is said | the tests called *duplicate* and *missing key* |',
    '| scripts are small, bounded and touch only their KEYS | `packages/holdfast/test/redis/contracts.test.ts` reaches every call of every script |',
    '| keys of one call lie in one slot | the scope is the hash tag; all tests run on a Cluster too |',
    '| success, conflict, damage and absence are counted | `holdfast_primitive_results_total`; the tests called *metrics* |',
    '',
  ].join('\n')
}

describe('the checklist', () => {
  it.each(rows.map((row) => [row.name, row] as const))('has all of %s', (_, row) => {
    expect(lacks(row)).toEqual([])
  })

  it('names only what there is', () => {
    expect(Object.keys(NOT_ARISING).filter((name) => !names.includes(name))).toEqual([])
    for (const row of rows) {
      const both = CASES.filter((one) => row.shown.has(one) && reasonOf(row, one) !== undefined)
      expect(both).toEqual([])
    }
    expect(existsSync(join(DOCS, 'README.md'))).toBe(true)
    const index = readFileSync(join(DOCS, 'README.md'), 'utf8')
    expect(names.filter((name) => !index.includes(`](${name}.md)`))).toEqual([])
  })

  it('is what the docs show', async () => {
    await expect(checklist()).toMatchFileSnapshot(join(DOCS, 'checklist.md'))
  })
})
