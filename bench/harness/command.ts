import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { ServicesError } from '@holdfast/services'
import { runAppend } from '../append/suite.js'
import { runAudit } from '../audit/suite.js'
import { runFallback } from '../fallback/suite.js'
import { runGrowth } from '../growth/suite.js'
import { runHttp } from '../http/suite.js'
import { runImport } from '../import/suite.js'
import { runPrimitives } from '../primitives/suite.js'
import { runSales } from '../sales/suite.js'
import { runSold } from '../sold/suite.js'
import { runStripe402 } from '../stripe402/suite.js'
import { runWallets } from '../wallets/suite.js'
import { BenchError } from './error.js'

export type Size = 'full' | 'quick' | 'smoke'

export interface Report {
  readonly suite: string
  /** What the run found wrong; anything here fails the command. */
  readonly failures: readonly string[]
  readonly markdown: string
  /** By file name. */
  readonly plots: ReadonlyMap<string, string>
  readonly data: object
}

export interface Run {
  readonly size: Size
  readonly commandLine: string
  /** Where CPU profiles of the workers go, if they are wanted. */
  readonly profileFolder: string | undefined
  /** Postgres waits so long before each flush of its log, as a slower disk would. */
  readonly commitDelayMs: number
  readonly say: (line: string) => void
}

export type Suite = (run: Run) => Promise<Report>

const SUITES: Readonly<Record<string, Suite>> = {
  append: runAppend,
  audit: runAudit,
  fallback: runFallback,
  growth: runGrowth,
  http: runHttp,
  import: runImport,
  primitives: runPrimitives,
  sales: runSales,
  sold: runSold,
  stripe402: runStripe402,
  wallets: runWallets,
}

const USAGE = `npm run bench -- [suite…] [--quick] [--json FILE]

  suites             ${Object.keys(SUITES).join(', ')} (default: all)
  --quick            under a minute a suite: fewer wallets, fewer and shorter rounds
  --smoke            a few seconds: shows that everything runs; its figures mean nothing
  --json FILE        the figures as JSON as well, by suite
  --report DIR       where the report goes (default: bench/report)
  --profile DIR      CPU profiles of the workers as well; they cost some speed
  --commit-delay MS  Postgres waits so long before each flush of its log, as on a slower disk (default: 0)`

/** @returns the exit code */
export async function runBenchmarks(args: readonly string[]): Promise<number> {
  const say = (line: string) => console.error(line)
  try {
    const { suites, size, json, folder, profileFolder, commitDelayMs, help } = readArguments(args)
    if (help) {
      console.log(USAGE)
      return 0
    }
    const commandLine = `npm run bench -- ${args.join(' ')}`.trim()
    const reports: Report[] = []
    const run: Run = { size, commandLine, profileFolder, commitDelayMs, say }
    for (const name of suites) reports.push(await (SUITES[name] as Suite)(run))
    for (const report of reports) writeReport(folder, report)
    const bySuite = Object.fromEntries(reports.map(({ suite, data }) => [suite, data]))
    if (json !== undefined) write(json, `${JSON.stringify(bySuite, null, 2)}\n`)
    const failures = reports.flatMap((report) => report.failures)
    for (const failure of failures) say(`FAILED: ${failure}`)
    return failures.length > 0 ? 1 : 0
  } catch (error) {
    if (!(error instanceof BenchError || error instanceof ServicesError)) throw error
    say(error.message)
    return 1
  }
}

function readArguments(args: readonly string[]) {
  const { values, positionals } = parse(args)
  const suites = positionals.length > 0 ? [...new Set(positionals)] : Object.keys(SUITES)
  for (const name of suites) {
    if (!(name in SUITES)) throw new BenchError(`suite: expected ${Object.keys(SUITES).join(', ')}, got ${name}`)
  }
  if (values.quick && values.smoke) throw new BenchError('Expected one of --quick and --smoke, got both')
  const size: Size = values.smoke ? 'smoke' : values.quick ? 'quick' : 'full'
  return {
    suites,
    size,
    json: values.json,
    folder: resolve(values.report ?? 'bench/report'),
    profileFolder: values.profile === undefined ? undefined : resolve(values.profile),
    commitDelayMs: readDelay(values['commit-delay']),
    help: values.help,
  }
}

function readDelay(text: string): number {
  const ms = Number(text)
  if (text.trim() !== '' && Number.isInteger(ms) && ms >= 0 && ms <= 100) return ms
  throw new BenchError(`--commit-delay: expected an integer from 0 to 100, got ${JSON.stringify(text)}`)
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        quick: { type: 'boolean', default: false },
        smoke: { type: 'boolean', default: false },
        json: { type: 'string' },
        report: { type: 'string' },
        profile: { type: 'string' },
        'commit-delay': { type: 'string', default: '0' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
  } catch (error) {
    throw new BenchError(`${(error as Error).message}\n\n${USAGE}`)
  }
}

function writeReport(folder: string, { suite, markdown, plots, data }: Report): void {
  write(join(folder, `${suite}.md`), markdown)
  write(join(folder, `${suite}.json`), `${JSON.stringify(data, null, 2)}\n`)
  for (const [name, svg] of plots) write(join(folder, name), svg)
  console.log(markdown)
  console.error(`The report is ${join(folder, `${suite}.md`)}`)
}

function write(path: string, content: string): void {
  mkdirSync(dirname(resolve(path)), { recursive: true })
  writeFileSync(path, content)
}
