import { setTimeout as sleep } from 'node:timers/promises'
import { treeCpuMs } from './cpu.js'
import { Latencies } from './latency.js'

/** What a call costs when so many callers ask at the same time. */
export interface Sample {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Processor time of a call: of this process, and of Redis. */
  readonly nodeUs: number
  readonly redisUs: number
}

export interface Loop {
  readonly callers: number
  readonly warmUpMs: number
  readonly measureMs: number
  readonly redisPid: number
}

/** Callers in a closed loop: who is answered asks again at once. */
export async function runLoop(
  call: () => Promise<void>,
  { callers, warmUpMs, measureMs, redisPid }: Loop,
): Promise<Sample> {
  let isOver = false
  let latencies = new Latencies()
  let done = 0
  const caller = async () => {
    while (!isOver) {
      const from = performance.now()
      await call()
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

/** Each round begins with another. */
export function turned<T>(all: readonly T[], by: number): T[] {
  return all.map((_, at) => all[(at + by) % all.length] as T)
}
