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
  /** Who is refused again and again asks less and less often, as clients of an overloaded server do. Default: every 5 ms. */
  readonly backOff?: boolean
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
  /** Times that an operation was refused for the moment and tried again, and how many of them were settles. */
  readonly refusals: number
  readonly settleRefusals: number
  /** Of each operation, within the measured time; a settle is one, a hold is one. */
  readonly latencyCounts: readonly number[]
}

const BUSY_WAIT_MS = 5
const BACK_OFF_MAX_MS = 1_000

/** Callers in a closed loop: each holds, settles, and begins again with another key, until the time is over. */
export async function runCallers(contender: Contender, turn: Turn): Promise<TurnResult> {
  const latencies = new Latencies()
  const done = { measuredOperations: 0, holds: 0, settles: 0, refusals: 0, settleRefusals: 0 }
  let measuring = false
  let stopped = false
  let failure: unknown

  const operation = async <T>(run: () => Promise<T>, refused = () => {}): Promise<T> => {
    const from = performance.now()
    for (let waitMs = BUSY_WAIT_MS; ; ) {
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
        refused()
        await sleep(waitMs * (0.5 + Math.random()))
        if (turn.backOff) waitMs = Math.min(2 * waitMs, BACK_OFF_MAX_MS)
      }
    }
  }

  const caller = async (number: number): Promise<void> => {
    for (let pair = 0; !stopped; pair += 1) {
      const wallet = turn.first + Math.floor(Math.random() * turn.wallets)
      const key = `${turn.name}-${number}-${pair}`
      const held = await operation(() => contender.hold(wallet, key))
      done.holds += 1
      await operation(
        () => contender.settle(wallet, `${key}-end`, held),
        () => {
          done.settleRefusals += 1
        },
      )
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
