import type { Attempt } from './attempt.js'
import { jitteredMs, sleep } from './clock.js'
import type { Context } from './context.js'
import { Line } from './line.js'

const BATCH_MAX = 500

/**
 * Gathers questions to Postgres while one is under way, and asks them together. While Postgres is away they wait. `ask` returns those that could
 * not be answered now: they are asked again after a pause, before the others.
 */
export class Batcher<T extends { readonly attempt: Attempt }> {
  readonly #context: Context
  readonly #ask: (questions: readonly T[]) => Promise<readonly T[]>
  readonly #queue: Line<T>
  #busy = false

  constructor(context: Context, ask: (questions: readonly T[]) => Promise<readonly T[]>) {
    this.#context = context
    this.#ask = ask
    this.#queue = new Line(context.options.attemptsMax, ({ attempt }) => attempt)
  }

  get length(): number {
    return this.#queue.length
  }

  add(question: T): void {
    this.#queue.push(question, this.#context.clock.now())
    if (!this.#busy) void this.#work()
  }

  async #work(): Promise<void> {
    const { clock, options, postgres, telemetry } = this.#context
    this.#busy = true
    await new Promise<void>((resolve) => queueMicrotask(resolve))
    for (let failures = 0; this.#queue.length > 0; ) {
      const questions = this.#queue.take(BATCH_MAX, clock.now())
      if (questions.length === 0) continue
      try {
        const left = await postgres.watch(options.postgresPatienceMs, this.#ask(questions))
        postgres.worked()
        if (left.length === 0) {
          failures = 0
          continue
        }
        this.#queue.putBack(left)
      } catch (error) {
        postgres.failedWith(error)
        if (this.#context.ended()) break
        telemetry.log?.('warn', 'journal_read_failed', { reason: String(error) })
        const stopped = postgres.stop
        // Either, and never both: an attempt that went on twice could be refused on one way and accepted on the other.
        if (stopped) for (const { attempt } of questions) this.#context.refuse(attempt, stopped)
        else this.#queue.putBack(questions)
      }
      await sleep(clock, 20 + jitteredMs(clock, failures, 20, 1_000))
      failures += 1
    }
    this.#busy = false
  }
}
