/** What calls of the primitives cost, against the libraries that people take for the same, on one server and in one run. */
import { type RedisHandle, startRedis } from '@holdfast/services'
import { Redis } from 'ioredis'
import type { Suite } from '../harness/command.js'
import { runLoop, type Sample, turned } from '../harness/loop.js'
import { describeMachine, type Machine } from '../harness/machine.js'
import { type Measured, measured, ratio } from '../harness/statistics.js'
import { type Contender, WORKS, type Work } from './contenders/index.js'
import { PLANS, type Plan } from './plan.js'
import { render } from './render.js'

export interface Cell {
  readonly work: string
  readonly callers: number
  readonly title: string
  readonly perSecond: Measured
  readonly p50Ms: Measured
  readonly p99Ms: Measured
  readonly nodeUs: Measured
  readonly redisUs: Measured
  /** Of Holdfast against this one, above 1 is better: as many times the calls a second, and as many for the same processor time. Null: it is Holdfast. */
  readonly holdfast: { readonly timesFaster: Measured; readonly timesCheaper: Measured } | null
}

export interface PrimitivesData {
  readonly suite: 'primitives'
  readonly commandLine: string
  readonly machine: Machine
  readonly plan: Plan
  readonly works: readonly { readonly name: string; readonly title: string; readonly remarks: string }[]
  readonly cells: readonly Cell[]
  /** What is not as callers were told. */
  readonly checks: readonly { readonly work: string; readonly title: string; readonly wrong: string | null }[]
}

interface Judged {
  readonly cells: readonly Cell[]
  readonly checks: PrimitivesData['checks']
}

export const runPrimitives: Suite = async ({ size, commandLine, say }) => {
  const plan = PLANS[size]
  say('primitives: starting Redis')
  const server = await startRedis({ source: 'installed' })
  try {
    const judged: Judged[] = []
    // One after the other: what one keeps in memory would be cleared up at the cost of another.
    for (const work of WORKS) judged.push(await judge(work, plan, server, say))
    const data: PrimitivesData = {
      suite: 'primitives',
      commandLine,
      machine: describeMachine(),
      plan,
      works: WORKS.map(({ name, title, remarks }) => ({ name, title, remarks })),
      cells: judged.flatMap(({ cells }) => cells),
      checks: judged.flatMap(({ checks }) => checks),
    }
    return { suite: 'primitives', failures: failuresOf(data), markdown: render(data), plots: new Map(), data }
  } finally {
    await server.stop()
  }
}

async function judge(work: Work, plan: Plan, server: RedisHandle, say: (line: string) => void): Promise<Judged> {
  say(`primitives: ${work.title}`)
  let databases = 0
  const contenders = await work.open(() => `${server.url}/${databases++}`, plan)
  try {
    const samples = new Map<string, Sample[]>()
    // The first round only warms up. Every later one goes through all cells: what disturbs one disturbs all alike.
    for (let round = 0; round <= plan.rounds; round += 1) {
      for (const callers of callersOf(work, plan)) {
        for (const contender of turned(contenders, round)) {
          const sample = await measure(contender, callers, plan, server)
          const key = keyOf(callers, contender)
          if (round > 0) samples.set(key, [...(samples.get(key) ?? []), sample])
        }
      }
    }
    const checks: { work: string; title: string; wrong: string | null }[] = []
    for (const one of contenders) checks.push({ work: work.name, title: one.title, wrong: await one.check() })
    return { cells: cellsOf(work, contenders, plan, samples), checks }
  } finally {
    for (const contender of contenders) await contender.close()
    await emptied(server.url)
  }
}

async function emptied(url: string): Promise<void> {
  const redis = new Redis(url)
  await redis.flushall()
  redis.disconnect()
}

const callersOf = ({ isShared }: Work, { callers }: Plan): readonly number[] => (isShared ? callers : [1])
const keyOf = (callers: number, { title }: Contender): string => `${callers} ${title}`

async function measure(contender: Contender, callers: number, plan: Plan, server: RedisHandle): Promise<Sample> {
  const { perCall } = contender
  const loop = { ...plan, callers, redisPid: server.pid as number }
  const { perSecond, p50Ms, p99Ms, nodeUs, redisUs } = await runLoop(() => contender.call(), loop)
  return {
    perSecond: perSecond * perCall,
    p50Ms: p50Ms / perCall,
    p99Ms: p99Ms / perCall,
    nodeUs: nodeUs / perCall,
    redisUs: redisUs / perCall,
  }
}

function cellsOf(
  work: Work,
  contenders: readonly Contender[],
  plan: Plan,
  samples: ReadonlyMap<string, readonly Sample[]>,
): Cell[] {
  return callersOf(work, plan).flatMap((callers) => {
    const of = (contender: Contender, read: (sample: Sample) => number) =>
      measured((samples.get(keyOf(callers, contender)) as readonly Sample[]).map(read))
    const cost = ({ nodeUs, redisUs }: Sample) => nodeUs + redisUs
    const ours = contenders[0] as Contender
    return contenders.map((one) => ({
      work: work.name,
      callers,
      title: one.title,
      perSecond: of(one, ({ perSecond }) => perSecond),
      p50Ms: of(one, ({ p50Ms }) => p50Ms),
      p99Ms: of(one, ({ p99Ms }) => p99Ms),
      nodeUs: of(one, ({ nodeUs }) => nodeUs),
      redisUs: of(one, ({ redisUs }) => redisUs),
      holdfast:
        one === ours
          ? null
          : {
              timesFaster: ratio(
                of(ours, ({ perSecond }) => perSecond),
                of(one, ({ perSecond }) => perSecond),
              ),
              timesCheaper: ratio(of(one, cost), of(ours, cost)),
            },
    }))
  })
}

/** A benchmark that does nothing, or not what it says, fails. */
export function failuresOf({ checks }: Pick<PrimitivesData, 'checks'>): string[] {
  return checks
    .filter(({ wrong }) => wrong !== null)
    .map((one) => `primitives: ${one.work}: ${one.title}: ${one.wrong}`)
}
