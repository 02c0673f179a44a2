import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { Machines } from './servers.js'
import { OPERATIONS, simulate } from './simulate.js'

const HELP = `npm run sim -- [--seeds N] [--from S] [--first-failure] [--json FILE]

Runs N schedules (default 100), seeds S, S + 1, … (default 1). Each is ${OPERATIONS} operations by six callers on a few wallets, over
three processes with the real engine and the shipped Lua, while processes die and pause, messages get lost, late and out of
order, Redis forgets and fails over, and Postgres goes away. Then all heals, and what callers heard is judged against the journal.

--seeds 1 --from S replays one schedule and prints everything that happened in it.
--first-failure stops at the first schedule that fails.
Exit code 1 when a schedule failed.`

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '100' },
    from: { type: 'string', default: '1' },
    json: { type: 'string' },
    'first-failure': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

function whole(name: string, text: string, min: number): number {
  const value = Number(text)
  if (Number.isSafeInteger(value) && value >= min) return value
  console.error(`--${name}: expected an integer from ${min}, got ${text}`)
  process.exit(2)
}

if (values.help) {
  console.log(HELP)
  process.exit(0)
}

const seeds = whole('seeds', values.seeds, 1)
const from = whole('from', values.from, 0)
// Errors are part of every schedule, and nobody reads where they came from: a stack costs more than the rest of one.
Error.stackTraceLimit = seeds === 1 ? 10 : 0

const machines = new Machines()
const counts = new Map<string, number>()
const failures: { seed: number; problems: string[] }[] = []
let operations = 0
const started = performance.now()
const perSecond = (): number => operations / OPERATIONS / ((performance.now() - started) / 1000)

for (let seed = from; seed < from + seeds; seed += 1) {
  const result = await simulate(seed, machines, seeds === 1)
  operations += result.operations
  for (const [name, count] of result.counts) counts.set(name, (counts.get(name) ?? 0) + count)
  if (seeds === 1) console.log(result.trace.join('\n'))
  if (result.problems.length > 0) {
    failures.push({ seed, problems: result.problems })
    console.log(`seed ${seed} failed:\n${result.problems.map((problem) => `  ${problem}`).join('\n')}`)
    console.log(`  npm run sim -- --seeds 1 --from ${seed}`)
    if (values['first-failure']) break
  }
  const done = seed - from + 1
  if (process.stderr.isTTY && done % 20 === 0) {
    process.stderr.write(`\r${done} of ${seeds} schedules, ${perSecond().toFixed(1)}/s, ${failures.length} failed `)
  }
}
if (process.stderr.isTTY) process.stderr.write('\r')

console.log('\nwhat the engine had to set right:')
for (const [name, count] of [...counts].sort()) console.log(`${String(count).padStart(12)}  ${name}`)
console.log(
  `\n${operations / OPERATIONS} schedules, ${operations} operations, ${perSecond().toFixed(1)} schedules/s, ${failures.length} failed`,
)
if (values.json) {
  const report = {
    from,
    seeds,
    operations,
    schedulesPerSecond: perSecond(),
    failures,
    counts: Object.fromEntries(counts),
  }
  writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`)
}
process.exitCode = failures.length > 0 ? 1 : 0
