import type { Attempt } from './attempt.js'
import { jitteredMs, sleep } from './clock.js'
import type { Context } from './context.js'

const BATCH_MAX = 500

/**
 * Gathers questions to Postgres while one is under way, and asks them together. While Postgres is away they wait. `ask` returns those that could
 * not be answered now: they are asked again after a pause, before the others.
 */
export class Batcher<T extends { readonly attempt: Attempt }> {
  readonly #context: Context
  readonly #ask: (questions: readonly T[]) => Promise<readonly T[]>
  #queue: T[] = []
  #busy = false

  constructor(context: Context, ask: (questions: readonly T[]) => Promise<readonly T[]>) {
    this.#context = context
    this.#ask = ask
  }

  get length(): number {
    return this.#queue.length
  }

  add(question: T): void {
    this.#queue.push(question)
    if (!this.#busy) void this.#work()
  }

  async #work(): Promise<void> {
    this.#busy = true
    await new Promise<void>((resolve) => queueMicrotask(resolve))
    for (let failures = 0; this.#queue.length > 0; ) {
      const questions = this.#queue.splice(0, BATCH_MAX)
      try {
        const left = await this.#context.postgres.watch(this.#context.options.postgresPatienceMs, this.#ask(questions))
        this.#context.postgres.worked()
        if (left.length === 0) {
          failures = 0
          continue
        }
        this.#putBack(left)
      } catch (error) {
        this.#context.postgres.failedWith(error)
        if (this.#context.ended()) break
        this.#context.telemetry.log?.('warn', 'journal_read_failed', { reason: String(error) })
        const stopped = this.#context.postgres.stop
        if (stopped) for (const { attempt } of questions) this.#context.refuse(attempt, stopped)
        this.#putBack(questions)
      }
      await sleep(this.#context.clock, 20 + jitteredMs(this.#context.clock, failures, 20, 1_000))
      failures += 1
    }
    this.#busy = false
  }

  /** Those whose caller has gone are not kept: Postgres may be away for long. */
  #putBack(questions: readonly T[]): void {
    this.#queue = questions.concat(this.#queue).filter(({ attempt }) => !attempt.settled)
  }
}
