import { HoldfastError } from '../errors/index.js'

interface Waiting<Q, A> {
  readonly question: Q
  readonly over: () => HoldfastError | null
  readonly resolve: (answer: A) => void
  readonly reject: (error: unknown) => void
}

const BATCH_MAX = 500

/** Gathers questions to Postgres while one call is under way, and asks them together with the next. */
export class Gathering<Q, A> {
  readonly #ask: (questions: readonly Q[]) => Promise<readonly A[]>
  readonly #queue: Waiting<Q, A>[] = []
  #busy = false

  constructor(ask: (questions: readonly Q[]) => Promise<readonly A[]>) {
    this.#ask = ask
  }

  /** `over`: why it need not be asked any more, when its turn comes; null: it is to be. */
  add(question: Q, over: () => HoldfastError | null = () => null): Promise<A> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ question, over, resolve, reject })
      if (!this.#busy) void this.#work()
    })
  }

  async #work(): Promise<void> {
    this.#busy = true
    await new Promise<void>((resolve) => queueMicrotask(resolve))
    while (this.#queue.length > 0) {
      const wanted = this.#next()
      if (wanted.length > 0) await this.#call(wanted)
    }
    this.#busy = false
  }

  /** While one call is under way, callers go, or Postgres turns out to be away. */
  #next(): Waiting<Q, A>[] {
    return this.#queue.splice(0, BATCH_MAX).filter(({ over, reject }) => {
      const why = over()
      if (why) reject(why)
      return !why
    })
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
