import { writeFileSync } from 'node:fs'
import { ServicesError } from '@holdfast/services'
import { Chance } from '../sim/world.js'
import { BadArguments, HELP, readArguments } from './arguments.js'
import { FAULTS, type Fault } from './faults.js'
import { Place } from './places.js'
import { Trial, type Verdict } from './trial.js'

const ROUND_MS = 60_000

interface Round {
  readonly seed: number
  readonly faults: readonly { name: string; tookMs: number }[]
  readonly verdict: Omit<Verdict, 'history' | 'journal'>
}

async function main(): Promise<number> {
  const given = readArguments(process.argv.slice(2))
  if (given === 'help') {
    console.log(HELP)
    return 0
  }
  const { minutes, seed, topology, json } = given
  console.log(`Starting Redis (${topology}) and Postgres.`)
  const place = await Place.start(topology)
  const rounds: Round[] = []
  try {
    const until = performance.now() + minutes * 60_000
    while (performance.now() < until)
      rounds.push(await playRound(place, seed + rounds.length, Math.min(until, performance.now() + ROUND_MS)))
  } finally {
    await place.stop()
  }
  const failed = rounds.filter(({ verdict }) => verdict.problems.length > 0)
  const operations = rounds.reduce((sum, { verdict }) => sum + verdict.summary.operations, 0)
  const faults = rounds.reduce((sum, round) => sum + round.faults.length, 0)
  if (json !== undefined) writeFileSync(json, `${JSON.stringify({ topology, minutes, seed, rounds }, null, 2)}\n`)
  console.log(
    `\n${rounds.length} rounds, ${faults} faults, ${operations} calls compared with the journal, ${failed.length} rounds failed`,
  )
  return failed.length > 0 ? 1 : 0
}

async function playRound(place: Place, seed: number, until: number): Promise<Round> {
  console.log(`\nround with seed ${seed}`)
  const chance = new Chance(seed)
  const trial = await Trial.begin(place, { seed, workers: 3, wallets: 1_000 })
  const startedAt = performance.now()
  const faults: Round['faults'][number][] = []
  try {
    await trial.underLoad()
    do {
      const fault = chance.pick(FAULTS.filter(({ topologies }) => topologies.includes(place.topology)))
      faults.push(await inflict(fault, trial, startedAt))
    } while (performance.now() < until)
    const { history: _, journal: __, ...verdict } = await trial.finish()
    tell(verdict)
    return { seed, faults, verdict }
  } finally {
    await trial.stop()
  }
}

/** And then waits until callers are answered again. */
async function inflict(fault: Fault, trial: Trial, startedAt: number) {
  const from = performance.now()
  process.stdout.write(`${((from - startedAt) / 1_000).toFixed(1).padStart(7)} s  ${fault.name}`)
  await fault.inflict(trial)
  await trial.underLoad()
  const tookMs = Math.round(performance.now() - from)
  console.log(` (${(tookMs / 1_000).toFixed(1)} s until 150 more answers)`)
  return { name: fault.name, tookMs }
}

function tell({ problems, summary, counts, entries }: Round['verdict']): void {
  const { operations, answers, p50Ms, p99Ms, slowestMs } = summary
  const list = (of: Readonly<Record<string, number>>) =>
    Object.entries(of)
      .sort()
      .map(([name, count]) => `${name} ${count}`)
      .join(', ')
  console.log(`  calls      ${operations}: ${list(answers)}`)
  console.log(`  latency    p50 ${p50Ms} ms, p99 ${p99Ms} ms, slowest ${slowestMs} ms`)
  const recoveries = Object.entries(counts).filter(([name]) => name.startsWith('recoveries_'))
  const setRight = recoveries.map(([name, count]) => [name.slice('recoveries_'.length), count] as const)
  console.log(`  set right  ${list(Object.fromEntries(setRight))}`)
  console.log(`  journal    ${entries} entries`)
  console.log(
    problems.length === 0 ? '  every promise was kept' : `  BROKEN:\n${problems.map((p) => `    ${p}`).join('\n')}`,
  )
}

try {
  process.exitCode = await main()
} catch (error) {
  if (error instanceof BadArguments) {
    console.error(error.message)
    process.exitCode = 2
  } else if (error instanceof ServicesError) {
    console.error(error.message)
    process.exitCode = 1
  } else throw error
}
