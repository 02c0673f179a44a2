/** What a deduction costs: the store of Holdfast against the published way, on the same server, in the same run. */
import { startRedis } from '@holdfast/services'
import type { Suite } from '../harness/command.js'
import { runLoop, type Sample, turned } from '../harness/loop.js'
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
          for (const [name, contender] of turned([...contenders], round)) {
            const loop = { ...plan, callers, redisPid: server.pid as number }
            const sample = await runLoop(() => contender.deduct(place === 'hot'), loop)
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
