import { setTimeout as sleep } from 'node:timers/promises'
import type { Contender } from './contender.js'
import { Latencies } from './latency.js'

export interface Turn {
  readonly callers: number
  /** Wallets are picked from these numbers, `first` included, `first + wallets` not. */
  readonly first: number
  readonly wallets: number
  readonly warmUpMs: number
  readonly measureMs: number
  /** Makes the keys of this turn and this process unlike all others. */
  readonly name: string
}

export interface TurnResult {
  /** Acknowledged within the measured time. A pair that began or ended outside of it counts by half. */
  readonly measuredOperations: number
  readonly measuredMs: number
  /** Operations acknowledged in the whole turn, warm-up and last round trips included. */
  readonly holds: number
  readonly settles: number
  /** Times that an operation was refused for the moment and tried again. */
  readonly refusals: number
  /** Of each operation, within the measured time; a settle is one, a hold is one. */
  readonly latencyCounts: readonly number[]
}

const BUSY_WAIT_MS = 5

/** Callers in a closed loop: each holds, settles, and begins again with another key, until the time is over. */
export async function runCallers(contender: Contender, turn: Turn): Promise<TurnResult> {
  const latencies = new Latencies()
  const done = { measuredOperations: 0, holds: 0, settles: 0, refusals: 0 }
  let measuring = false
  let stopped = false
  let failure: unknown

  const operation = async <T>(run: () => Promise<T>): Promise<T> => {
    const from = performance.now()
    for (;;) {
      try {
        const result = await run()
        if (measuring) {
          latencies.record(performance.now() - from)
          done.measuredOperations += 1
        }
        return result
      } catch (error) {
        if (!contender.isBusy(error)) throw error
        done.refusals += 1
        await sleep(BUSY_WAIT_MS * (0.5 + Math.random()))
      }
    }
  }

  const caller = async (number: number): Promise<void> => {
    for (let pair = 0; !stopped; pair += 1) {
      const wallet = turn.first + Math.floor(Math.random() * turn.wallets)
      const key = `${turn.name}-${number}-${pair}`
      const held = await operation(() => contender.hold(wallet, key))
      done.holds += 1
      await operation(() => contender.settle(wallet, `${key}-end`, held))
      done.settles += 1
    }
  }

  const callers = Array.from({ length: turn.callers }, (_, number) =>
    caller(number).catch((error) => {
      failure ??= error
      stopped = true
    }),
  )
  await sleep(turn.warmUpMs)
  measuring = true
  const from = performance.now()
  await sleep(turn.measureMs)
  measuring = false
  const measuredMs = performance.now() - from
  stopped = true
  await Promise.all(callers)
  if (failure !== undefined) throw failure
  return { ...done, measuredMs, latencyCounts: latencies.counts }
}
