/** What a deduction costs: the store of Holdfast against the published way, on the same server, in the same run. */
import { setTimeout as sleep } from 'node:timers/promises'
import { startRedis } from '@holdfast/services'
import type { Suite } from '../harness/command.js'
import { treeCpuMs } from '../harness/cpu.js'
import { Latencies } from '../harness/latency.js'
import { describeMachine, type Machine } from '../harness/machine.js'
import { type Measured, measured, ratio } from '../harness/statistics.js'
import { Contender, type ContenderName, TITLES } from './contenders.js'
import { PLANS, type Plan } from './plan.js'
import { render } from './render.js'

export type Place = 'spread' | 'hot'

export interface Cell {
  readonly place: Place
  readonly callers: number
  readonly contender: ContenderName
  readonly perSecond: Measured
  readonly p50Ms: Measured
  readonly p99Ms: Measured
  readonly nodeUs: Measured
  readonly redisUs: Measured
  /** Against the published way, above 1 is better: as many times the deductions a second, and as many for the same processor time. */
  readonly timesFaster: Measured
  readonly timesCheaper: Measured
}

export interface Stripe402Data {
  readonly suite: 'stripe402'
  readonly commandLine: string
  readonly machine: Machine
  readonly plan: Plan
  readonly cells: readonly Cell[]
  /** Deductions that callers were told of, and what the clients lack. */
  readonly checks: readonly { readonly contender: ContenderName; readonly told: number; readonly missing: number }[]
}

interface Sample {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly nodeUs: number
  readonly redisUs: number
}

const NAMES: readonly ContenderName[] = ['published', 'store', 'keyed']

export const runStripe402: Suite = async ({ size, commandLine, say }) => {
  const plan = PLANS[size]
  say('stripe402: starting Redis')
  const server = await startRedis({ source: 'installed' })
  const contenders = new Map<ContenderName, Contender>()
  try {
    for (const [number, name] of NAMES.entries()) {
      say(`stripe402: creating ${plan.clients} clients: ${TITLES[name]}`)
      contenders.set(name, await Contender.open(name, `${server.url}/${number}`, plan.clients))
    }
    const samples = new Map<string, Sample[]>()
    // The first round only warms up. Every later one goes through all cells: what disturbs one disturbs all alike.
    for (let round = 0; round <= plan.rounds; round += 1) {
      for (const place of ['spread', 'hot'] as const) {
        for (const callers of plan.callers) {
          for (const [name, contender] of turned(contenders, round)) {
            const sample = await measure(contender, place === 'hot', callers, plan, server.pid as number)
            const key = `${place} ${callers} ${name}`
            if (round > 0) samples.set(key, [...(samples.get(key) ?? []), sample])
          }
        }
      }
      say(`stripe402: round ${round} of ${plan.rounds}`)
    }
    const checks = await Promise.all(
      [...contenders].map(async ([contender, one]) => ({ contender, told: one.done, missing: await one.missing() })),
    )
    const data: Stripe402Data = {
      suite: 'stripe402',
      commandLine,
      machine: describeMachine(),
      plan,
      cells: cellsOf(plan, samples),
      checks,
    }
    return { suite: 'stripe402', failures: failuresOf(data), markdown: render(data), plots: new Map(), data }
  } finally {
    for (const contender of contenders.values()) contender.close()
    await server.stop()
  }
}

/** Each round begins with another. */
function turned<K, V>(all: ReadonlyMap<K, V>, by: number): [K, V][] {
  const entries = [...all]
  return entries.map((_, at) => entries[(at + by) % entries.length] as [K, V])
}

/** Callers in a closed loop: who is answered asks again at once. */
async function measure(
  contender: Contender,
  isHot: boolean,
  callers: number,
  { warmUpMs, measureMs }: Plan,
  redisPid: number,
): Promise<Sample> {
  let isOver = false
  let latencies = new Latencies()
  let done = 0
  const caller = async () => {
    while (!isOver) {
      const from = performance.now()
      await contender.deduct(isHot)
      latencies.record(performance.now() - from)
      done += 1
    }
  }
  const all = Promise.all(Array.from({ length: callers }, caller))
  await Promise.race([all, sleep(warmUpMs)])
  latencies = new Latencies()
  done = 0
  const before = meter(redisPid)
  await Promise.race([all, sleep(measureMs)])
  const after = meter(redisPid)
  const measuredDone = done
  isOver = true
  await all
  return {
    perSecond: (measuredDone * 1_000) / (after.at - before.at),
    p50Ms: latencies.percentile(50),
    p99Ms: latencies.percentile(99),
    nodeUs: (after.nodeUs - before.nodeUs) / measuredDone,
    redisUs: ((after.redisMs - before.redisMs) * 1_000) / measuredDone,
  }
}

function meter(redisPid: number) {
  const { user, system } = process.cpuUsage()
  return { at: performance.now(), nodeUs: user + system, redisMs: treeCpuMs(redisPid) }
}

function cellsOf({ callers }: Plan, samples: ReadonlyMap<string, readonly Sample[]>): Cell[] {
  return (['spread', 'hot'] as const).flatMap((place) =>
    callers.flatMap((each) => {
      const of = (name: ContenderName, read: (sample: Sample) => number) =>
        measured((samples.get(`${place} ${each} ${name}`) as readonly Sample[]).map(read))
      const cost = ({ nodeUs, redisUs }: Sample) => nodeUs + redisUs
      return NAMES.map((name) => ({
        place,
        callers: each,
        contender: name,
        perSecond: of(name, ({ perSecond }) => perSecond),
        p50Ms: of(name, ({ p50Ms }) => p50Ms),
        p99Ms: of(name, ({ p99Ms }) => p99Ms),
        nodeUs: of(name, ({ nodeUs }) => nodeUs),
        redisUs: of(name, ({ redisUs }) => redisUs),
        timesFaster: ratio(
          of(name, ({ perSecond }) => perSecond),
          of('published', ({ perSecond }) => perSecond),
        ),
        timesCheaper: ratio(of('published', cost), of(name, cost)),
      }))
    }),
  )
}

/** A benchmark that does nothing, or not what it says, fails. */
export function failuresOf({ checks }: Pick<Stripe402Data, 'checks'>): string[] {
  return checks
    .filter(({ told, missing }) => told === 0 || told !== missing)
    .map(({ contender, told, missing }) => `stripe402: ${contender}: ${told} deductions told, ${missing} made`)
}
