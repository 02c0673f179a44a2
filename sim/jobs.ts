import { parentPort, Worker, workerData } from 'node:worker_threads'
import { Machines } from './servers.js'
import { type SimulationResult, simulate } from './simulate.js'

/** Small enough that all jobs end together, large enough that nobody waits for the next. */
const SHARE = 10

/** What a job is given first; then it asks for seeds by its results. */
interface Start {
  readonly stackTraceLimit: number
}

/**
 * Runs schedules on several threads and gives their results as they come. Which thread runs a seed, and what it ran before, makes no
 * difference to the schedule.
 */
export async function* schedules(from: number, seeds: number, jobs: number): AsyncGenerator<SimulationResult> {
  const end = from + seeds
  if (jobs === 1) {
    const machines = new Machines()
    for (let seed = from; seed < end; seed += 1) yield await simulate(seed, machines)
    return
  }
  let next = from
  const results: SimulationResult[] = []
  let wake = (): void => {}
  let failure: Error | undefined
  const workers = Array.from({ length: jobs }, () => {
    const start: Start = { stackTraceLimit: Error.stackTraceLimit }
    const worker = new Worker(new URL(import.meta.url), { workerData: start })
    const give = (): void => {
      const share = Math.min(SHARE, end - next)
      if (share > 0) worker.postMessage([next, next + share])
      next += share
    }
    worker.on('message', (result: SimulationResult | 'more') => {
      if (result === 'more') give()
      else results.push(result)
      wake()
    })
    worker.on('error', (error) => {
      failure = error
      wake()
    })
    // A thread that ends before it is told to leaves seeds behind that nobody runs.
    worker.on('exit', (code) => {
      failure ??= new Error(`a thread of the simulator ended by itself (${code})`)
      wake()
    })
    return worker
  })
  try {
    for (let got = 0; got < seeds; ) {
      if (failure) throw failure
      const result = results.shift()
      if (result) {
        got += 1
        yield result
        continue
      }
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()))
  }
}

/** The other side: this very program, started as a thread. */
export function work(): void {
  Error.stackTraceLimit = (workerData as Start).stackTraceLimit
  const machines = new Machines()
  parentPort?.on('message', async ([from, to]: [number, number]) => {
    for (let seed = from; seed < to; seed += 1) parentPort?.postMessage(await simulate(seed, machines))
    parentPort?.postMessage('more')
  })
  parentPort?.postMessage('more')
}
