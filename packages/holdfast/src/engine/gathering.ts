import { HoldfastError } from '../errors/index.js'

interface Waiting<Q, A> {
  readonly question: Q
  readonly resolve: (answer: A) => void
  readonly reject: (error: unknown) => void
}

const BATCH_MAX = 500

/** Gathers questions to Postgres while one call is under way, and asks them together with the next. */
export class Gathering<Q, A> {
  readonly #ask: (questions: readonly Q[]) => Promise<readonly A[]>
  #queue: Waiting<Q, A>[] = []
  #busy = false

  constructor(ask: (questions: readonly Q[]) => Promise<readonly A[]>) {
    this.#ask = ask
  }

  add(question: Q): Promise<A> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ question, resolve, reject })
      if (!this.#busy) void this.#work()
    })
  }

  async #work(): Promise<void> {
    this.#busy = true
    await new Promise<void>((resolve) => queueMicrotask(resolve))
    while (this.#queue.length > 0) {
      await this.#call(this.#queue.splice(0, BATCH_MAX))
    }
    this.#busy = false
  }

  async #call(waiting: readonly Waiting<Q, A>[]): Promise<void> {
    try {
      const answers = await this.#ask(waiting.map(({ question }) => question))
      for (const [index, { resolve }] of waiting.entries()) resolve(answers[index] as A)
    } catch (error) {
      const isOneOfThem = waiting.length > 1 && error instanceof HoldfastError && !error.retryable
      // One that Postgres can't take must not fail those beside it.
      if (isOneOfThem) for (const one of waiting) await this.#call([one])
      else for (const { reject } of waiting) reject(error)
    }
  }
}
