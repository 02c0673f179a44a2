import type { Raise, Snapshot } from '../journal/index.js'
import type { Context } from './context.js'

interface Waiting {
  readonly raise: Raise
  readonly resolve: (snapshot: Snapshot | null) => void
  readonly reject: (error: unknown) => void
}

const TOGETHER_MAX = 64
const STATEMENTS_MAX = 2
/** Those that have to be raised by themselves may take long, and there are other uses for connections. */
const ALONE_MAX = 4

/**
 * Raises epochs, those together that come while others are under way: a commit costs the same for one as for many. After a failover
 * everything is loaded anew, and this is most of what that takes. A wallet is among them only once at a time.
 */
export class Raiser {
  readonly #context: Context
  readonly #queue: Waiting[] = []
  #statements = 0
  readonly #apart: Waiting[] = []
  #alone = 0

  constructor(context: Context) {
    this.#context = context
  }

  raise(raise: Raise): Promise<Snapshot | null> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ raise, resolve, reject })
      if (this.#statements < STATEMENTS_MAX) void this.#work()
    })
  }

  async #work(): Promise<void> {
    this.#statements += 1
    // Those of the same tick go along.
    await new Promise<void>((resolve) => queueMicrotask(resolve))
    while (this.#queue.length > 0) await this.#raiseTogether(this.#queue.splice(0, TOGETHER_MAX))
    this.#statements -= 1
  }

  #raiseAlone(waiting: Waiting): void {
    this.#apart.push(waiting)
    if (this.#alone < ALONE_MAX) void this.#workAlone()
  }

  async #workAlone(): Promise<void> {
    this.#alone += 1
    for (let next = this.#apart.shift(); next; next = this.#apart.shift()) await this.#raiseTogether([next])
    this.#alone -= 1
  }

  async #raiseTogether(together: readonly Waiting[]): Promise<void> {
    try {
      const answers = await this.#watch(this.#context.journal.raise(together.map(({ raise }) => raise)))
      for (const [index, waiting] of together.entries()) {
        const answer = answers[index] ?? null
        // Somebody else is at it, or it takes too long: nobody but who wants this wallet has to wait for that.
        if (answer === 'locked') this.#raiseAlone(waiting)
        else waiting.resolve(answer)
      }
    } catch (error) {
      for (const { raise, reject } of together) {
        this.#context.checkpoints.loadFailed(raise.ref, error)
        reject(error)
      }
    }
  }

  /** A wallet may take long, or be locked, and that says nothing of Postgres: so it is asked something else then, which takes no time. */
  async #watch<T>(raised: Promise<T>): Promise<T> {
    const { clock, journal, options, postgres } = this.#context
    const halfMs = options.postgresPatienceMs / 2
    const ask = (): void => void postgres.watch(halfMs, journal.read([])).catch(() => {})
    const cancel = clock.after(halfMs, ask, true)
    try {
      return await raised
    } finally {
      cancel()
    }
  }
}
