/**
 * What the documentation says is tried. Blocks that begin with ```ts run are, page by page, one program: it must have no type error and
 * run against real servers, and each `console.log(…) // → text` must print that text. Blocks that begin with ```sh run are lines of curl:
 * each must answer what stands below it, where … is anything. A page that has both runs the lines before its program first.
 *
 *   npx vitest run test/docs.test.ts --update     writes docs/reference/mutants.md
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Api } from '../packages/server/test/support/api.js'
import { HARMLESS, MUTANTS } from '../sim/mutants/index.js'
import { curl } from './curl.js'
import { freshDatabase, freshRedis } from './servers.js'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** Below node_modules, so that what samples import is found from there. */
const FOLDER = join(ROOT, `node_modules/.cache/holdfast/samples-${process.pid}`)

const run = promisify(execFile)

const SAMPLE_MAX_MS = 60_000
const MINUTE_MS = 60_000

interface Page {
  /** From the root: `docs/README.md`. */
  readonly path: string
  readonly text: string
}

interface Sample {
  readonly path: string
  readonly program: string
  readonly prints: readonly string[]
  readonly source: string
  readonly outfile: string
}

const pages = ['README.md', ...markdownUnder('docs')].map(
  (path): Page => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }),
)
const samples = pages.flatMap(sampleOf)
/** `docs/README.md`, and that of a folder whose pages it leaves to it. */
const indexes = pages.filter(({ path }) => /^docs\/(.*\/)?README\.md$/.test(path))

function markdownUnder(folder: string): string[] {
  const names = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
  return names.filter((name) => name.endsWith('.md')).map((name) => `${folder}/${name}`)
}

function sampleOf({ path, text }: Page): Sample[] {
  const blocks = [...text.matchAll(/^```ts run\n(.*?)^```$/gms)].map(([, code]) => code as string)
  if (blocks.length === 0) return []
  const program = blocks.join('\n')
  const name = path.replaceAll('/', '-').replace(/\.md$/, '')
  return [
    {
      path,
      program,
      prints: [...program.matchAll(/\/\/ → (.*)$/gm)].map(([, printed]) => printed as string),
      source: join(FOLDER, `${name}.ts`),
      outfile: join(FOLDER, `${name}.mjs`),
    },
  ]
}

interface Line {
  readonly command: string
  readonly answer: RegExp
}

/** The lines of curl in a part of a page, and what each answers. */
function linesOf(text: string): Line[] {
  const blocks = [...text.matchAll(/^```sh run\n(.*?)^```$/gms)].map(([, block]) => block as string)
  return [...blocks.join('\n').matchAll(/^(curl .*?)\n# → ([^\n]*)$/gms)].map(([, command, answer]) => ({
    command: command as string,
    answer: new RegExp(`^${(answer as string).split('…').map(escaped).join('.*')}$`, 's'),
  }))
}

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** Where links lead, with their anchors. */
function linksOf(text: string): string[] {
  const prose = text.replaceAll(/^```.*?^```$/gms, '').replaceAll(/`[^`\n]*`/g, '')
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target as string)
}

/** As GitHub makes them of headings. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
    (heading as string)
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

function brokenLinks({ path, text }: Page): string[] {
  return linksOf(text).filter((target) => {
    if (/^https?:/.test(target)) return false
    const [file, anchor] = target.split('#') as [string, string | undefined]
    const full = join(ROOT, dirname(path), file)
    if (!existsSync(full)) return true
    return anchor !== undefined && !anchorsOf(file === '' ? text : readFileSync(full, 'utf8')).includes(anchor)
  })
}

const FILE = /`((?:packages|sim|chaos|bench|test|scripts|docs|src|lua|sql)\/[\w./-]+\.(?:ts|mjs|lua|sql|md))/g

/** Files that the text names, from the root or from the library's folder. */
function missingFiles({ text }: Page): string[] {
  const named = [...text.matchAll(FILE)].map(([, file]) => file as string)
  return named.filter((file) => ![ROOT, join(ROOT, 'packages/holdfast')].some((base) => existsSync(join(base, file))))
}

function mutantsPage(): string {
  const cell = (text: string) => text.replaceAll('|', '\\|')
  const files = (patches: readonly { file: string }[]) =>
    [...new Set(patches.map(({ file }) => `\`${file}\``))].join(', ')
  return [
    '# Mutants of the simulator',
    '',
    'Written from `sim/mutants/`; a test keeps the two in step.',
    '',
    'Each row leaves a rule out, by a patch of the sources that nothing but this test uses. `npm test` shows that',
    '[the simulator](../operating/simulator.md) finds each within the stated number of schedules, beginning with seed 1, or with the one that is named: a little before one that finds it, so that the suite need not look for it each time.',
    '',
    '| rule that is left out | what goes wrong | patched | found within |',
    '|---|---|---|---|',
    ...MUTANTS.map(
      ({ rule, without, patches, within, from }) =>
        `| ${cell(rule)} | ${cell(without)} | ${files(patches)} | ${within.toLocaleString('en')}${from ? `, from ${from}` : ''} |`,
    ),
    '',
    '## Left out without harm',
    '',
    'These are there for speed. Without them every schedule must pass all the same.',
    '',
    '| what is left out | patched |',
    '|---|---|',
    ...HARMLESS.map(({ rule, patches }) => `| ${cell(rule)} | ${files(patches)} |`),
    '',
  ].join('\n')
}

describe('the documentation', () => {
  it.each(pages.map((page) => [page.path, page] as const))('%s links to what is there', (_, page) => {
    expect(brokenLinks(page)).toEqual([])
  })

  it.each(pages.map((page) => [page.path, page] as const))('%s names files that are there', (_, page) => {
    expect(missingFiles(page)).toEqual([])
  })

  it.each(indexes.map(({ path }) => path))('lists every page in its index: %s', (path) => {
    const folder = dirname(path)
    const isBelowAnother = (page: string) =>
      indexes.some(
        (index) =>
          index.path !== path &&
          dirname(index.path).startsWith(`${folder}/`) &&
          page !== index.path &&
          page.startsWith(`${dirname(index.path)}/`),
      )
    const listed = linksOf(pages.find((page) => page.path === path)?.text ?? '').map((target) =>
      join(folder, target.split('#')[0] as string),
    )
    const others = pages.map((page) => page.path).filter((page) => page.startsWith(`${folder}/`) && page !== path)
    expect([...new Set(listed)].filter((page) => page.startsWith(`${folder}/`)).sort()).toEqual(
      others.filter((page) => !isBelowAnother(page)).sort(),
    )
  })

  it('names mutants that there are, and every one of them', () => {
    const protocol = pages.find(({ path }) => path === 'docs/concepts/protocol.md') as Page
    const lists = [...protocol.text.matchAll(/\bmutants? ((?:\*[^*]+\*(?:, )?)+)/g)].map(([, list]) => list as string)
    const named = lists.flatMap((list) => [...list.matchAll(/\*([^*]+)\*/g)].map(([, rule]) => rule))
    expect(named.sort()).toEqual(MUTANTS.map(({ rule }) => rule).sort())
  })

  it('has the table of mutants that sim/mutants has', async () => {
    await expect(mutantsPage()).toMatchFileSnapshot(join(ROOT, 'docs/reference/mutants.md'))
  })

  it('would notice a broken link, a lost anchor and a lost file', () => {
    const text = '# A page\n[a](gone.md) [b](#a-page) [c](#b-page) `sim/gone.ts` `sim/main.ts`'
    expect(brokenLinks({ path: 'docs/README.md', text })).toEqual(['gone.md', '#b-page'])
    expect(missingFiles({ path: 'docs/README.md', text })).toEqual(['sim/gone.ts'])
  })
})

describe('the samples', () => {
  beforeAll(() => {
    mkdirSync(FOLDER, { recursive: true })
    for (const { source, program } of samples) writeFileSync(source, program)
  })
  afterAll(() => rmSync(FOLDER, { recursive: true, force: true }))

  it('stand on the pages that a newcomer reads', () => {
    expect(samples.map(({ path }) => path)).toEqual(
      expect.arrayContaining([
        'README.md',
        'docs/guides/getting-started.md',
        'docs/guides/metered-sessions.md',
        'docs/guides/transfers.md',
        'docs/guides/reading.md',
        'docs/guides/locks.md',
        'docs/guides/stripe402.md',
        'docs/guides/http.md',
        'docs/guides/events.md',
      ]),
    )
    for (const { prints } of samples) expect(prints.length).toBeGreaterThan(0)
  })

  it('have no type errors', { timeout: 180_000 }, async () => {
    const config = join(FOLDER, 'tsconfig.json')
    const base = relative(FOLDER, join(ROOT, 'tsconfig.tests.json'))
    writeFileSync(config, JSON.stringify({ extends: base, include: ['*.ts'] }))
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
    const { stdout } = await run(process.execPath, [tsc, '-p', config]).catch((error) => error as { stdout: string })
    expect(stdout).toBe('')
  })

  const each = samples.map((sample) => [sample.path, sample] as const)
  it.each(each)('of %s do what they say', { timeout: 3 * SAMPLE_MAX_MS }, async (_, sample) => {
    await build({
      entryPoints: [sample.source],
      outfile: sample.outfile,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      alias: {
        'holdfast/primitives': join(ROOT, 'packages/holdfast/src/primitives/index.ts'),
        'holdfast/stripe402': join(ROOT, 'packages/holdfast/src/stripe402/index.ts'),
        holdfast: join(ROOT, 'packages/holdfast/src/index.ts'),
      },
      external: ['ioredis', 'pg'],
      logLevel: 'error',
    })
    const env = { ...process.env, REDIS_URL: await freshRedis(), DATABASE_URL: await freshDatabase() }
    if (sample.program.includes('HOLDFAST_URL')) return tryOverHttp(sample)
    if (sample.program.includes('FixedWindow')) await untilFarFromMinuteEnd()
    const { stdout } = await run(process.execPath, [sample.outfile], { env, timeout: SAMPLE_MAX_MS })
    expect(stdout.trimEnd().split('\n')).toEqual(sample.prints)
  })
})

/** What counts by the minute begins anew with the next one. */
async function untilFarFromMinuteEnd(): Promise<void> {
  const leftMs = MINUTE_MS - (Date.now() % MINUTE_MS)
  if (leftMs < 15_000) await sleep(leftMs + 10)
}

/** Lines and program in the order of the page: one goes on where the other ended. */
async function tryOverHttp({ path, outfile, prints }: Sample): Promise<void> {
  const { text } = pages.find((page) => page.path === path) as Page
  const [before = '', ...rest] = text.split('```ts run')
  const api = await Api.start()
  const env = { HOLDFAST_URL: api.url, HOLDFAST_KEY: await api.key() }
  const tryLines = async (part: string) => {
    const lines = linesOf(part)
    expect(lines.length).toBeGreaterThan(1)
    for (const { command, answer } of lines) expect(await curl(command, env)).toMatch(answer)
  }
  await tryLines(before)
  const { stdout } = await run(process.execPath, [outfile], { env: { ...process.env, ...env }, timeout: SAMPLE_MAX_MS })
  expect(stdout.trimEnd().split('\n')).toEqual(prints)
  await tryLines(rest.join(''))
}
