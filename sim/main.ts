import { writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { isMainThread } from 'node:worker_threads'
import { schedules, work } from './jobs.js'
import { Machines } from './servers.js'
import { OPERATIONS, type SimulationResult, simulate } from './simulate.js'

const HELP = `npm run sim -- [--seeds N] [--from S] [--jobs N] [--first-failure] [--json FILE]

Runs N schedules (default 100), seeds S, S + 1, … (default 1). Each is ${OPERATIONS} operations by six callers on a few wallets, over
three processes with the real engine and the shipped Lua, while processes die and pause, messages get lost, late and out of
order, Redis forgets and fails over, and so does Postgres. Then all heals, and what callers heard is judged against the journal.

--seeds 1 --from S replays one schedule and prints everything that happened in it.
--jobs N uses N threads (default: one a core). A seed's schedule is the same on any.
--first-failure stops at the first schedule that fails.
Exit code 1 when a schedule failed.`

function whole(name: string, text: string, min: number): number {
  const value = Number(text)
  if (Number.isSafeInteger(value) && value >= min) return value
  console.error(`--${name}: expected an integer from ${min}, got ${text}`)
  process.exit(2)
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string', default: '100' },
      from: { type: 'string', default: '1' },
      jobs: { type: 'string', default: `${availableParallelism()}` },
      json: { type: 'string' },
      'first-failure': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(HELP)

  const seeds = whole('seeds', values.seeds, 1)
  const from = whole('from', values.from, 0)
  const jobs = whole('jobs', values.jobs, 1)
  // Errors are part of every schedule, and nobody reads where they came from: a stack costs more than the rest of one.
  Error.stackTraceLimit = seeds === 1 ? 10 : 0

  const counts = new Map<string, number>()
  const failures: { seed: number; problems: string[] }[] = []
  const started = performance.now()
  let done = 0
  const perSecond = (): number => done / ((performance.now() - started) / 1000)

  // A line that moves on a terminal; in a file one now and then.
  const progress = (): void => {
    if (done % (process.stderr.isTTY ? 20 : 1_000) !== 0) return
    const text = `${done} of ${seeds} schedules, ${perSecond().toFixed(1)}/s, ${failures.length} failed`
    process.stderr.write(process.stderr.isTTY ? `\r${text} ` : `${text}\n`)
  }

  for await (const result of seeds === 1 ? replay(from) : schedules(from, seeds, Math.min(jobs, seeds))) {
    done += 1
    for (const [name, count] of result.counts) counts.set(name, (counts.get(name) ?? 0) + count)
    if (result.problems.length > 0) {
      failures.push({ seed: result.seed, problems: result.problems })
      console.log(`seed ${result.seed} failed:\n${result.problems.map((problem) => `  ${problem}`).join('\n')}`)
      console.log(`  npm run sim -- --seeds 1 --from ${result.seed}`)
      if (values['first-failure']) break
    }
    progress()
  }
  if (process.stderr.isTTY) process.stderr.write('\r')

  console.log('\nwhat happened, and what the engine had to set right:')
  for (const [name, count] of [...counts].sort()) console.log(`${String(count).padStart(12)}  ${name}`)
  console.log(
    `\n${done} schedules, ${done * OPERATIONS} operations, ${perSecond().toFixed(1)} schedules/s, ${failures.length} failed`,
  )
  if (values.json) {
    const report = {
      from,
      seeds,
      operations: done * OPERATIONS,
      schedulesPerSecond: perSecond(),
      failures: failures.sort((a, b) => a.seed - b.seed),
      counts: Object.fromEntries(counts),
    }
    writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`)
  }
  process.exitCode = failures.length > 0 ? 1 : 0
}

async function* replay(seed: number): AsyncGenerator<SimulationResult> {
  const result = await simulate(seed, new Machines(), true)
  console.log(result.trace.join('\n'))
  yield result
}

if (isMainThread) await main()
else work()
