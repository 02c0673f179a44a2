import { HoldfastError } from '../errors/index.js'
import type { Numbers } from '../journal/index.js'
import type { Context } from './context.js'
import type { Patience } from './intended.js'

/** What lies there, of whichever kind. */
interface Claimed {
  readonly attempt: number
}

/** One kind of what others began. */
export interface Recoverable {
  /** In logs. */
  readonly name: string
  readonly intents: {
    numbers(): Promise<Numbers | null>
    claim(upTo: number, most: number, except: readonly number[]): Promise<Claimed[]>
  }
  /** Brings one that was claimed to an end. Which, in metrics. */
  recover(intent: Claimed, patience: Patience): Promise<string>
}

/** So far the numbers had come by then. */
interface Mark {
  readonly at: number
  readonly newest: number
}

class Kind {
  readonly recoverable: Recoverable
  /** In order. All but the first are too young to count. */
  marks: Mark[] = []
  /** By their numbers. */
  readonly underWay = new Map<number, Promise<void>>()
  claiming: Promise<void> | null = null

  constructor(recoverable: Recoverable) {
    this.recoverable = recoverable
  }

  /** What has a number up to this one has been lying there since `before`; 0: nothing is known to have. */
  oldUpTo(before: number): number {
    const { marks } = this
    while (marks[1] && marks[1].at <= before) marks.shift()
    return marks[0] && marks[0].at <= before ? marks[0].newest : 0
  }
}

/**
 * Finishes what others began. Every process looks; who takes one gives it another number, and so the others leave it alone for a while. How
 * long an intent has been lying there is measured by this process's own clock: a clock of Postgres that jumps must not make it old before its
 * hold has had its time. Numbers are given in order, and one is given after the time of its hold has begun: so when a number was seen, the
 * time of all up to it had begun, also of those that were not looked at, or not to be seen yet. A process that dies may leave thousands.
 */
export class Recovery {
  readonly #context: Context
  readonly #kinds: readonly Kind[]
  #cancel: (() => void) | undefined
  #looking: Promise<unknown> | undefined
  #stopped = false

  constructor(context: Context, kinds: readonly Recoverable[]) {
    this.#context = context
    this.#kinds = kinds.map((recoverable) => new Kind(recoverable))
  }

  start(): void {
    const { clock, options } = this.#context
    if (this.#stopped) return
    this.#cancel = clock.after(
      options.sweepEveryMs * (0.5 + clock.random()),
      () => {
        this.#looking = Promise.all(this.#kinds.map((kind) => this.#look(kind))).finally(() => this.start())
      },
      true,
    )
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancel?.()
    await this.#looking
    await Promise.all(this.#kinds.flatMap(({ claiming, underWay }) => [claiming, ...underWay.values()]))
  }

  /** Postgres may be as it was before, and give the same numbers to others. */
  forget(): void {
    for (const kind of this.#kinds) kind.marks = []
  }

  async #look(kind: Kind): Promise<void> {
    const { clock, postgres, telemetry } = this.#context
    const { name, intents } = kind.recoverable
    if (postgres.open) return this.forget()
    const { marks } = kind
    try {
      const numbers = await intents.numbers()
      if (numbers === null || kind.marks !== marks) return
      marks.push({ at: clock.now(), newest: numbers.newest })
      if (numbers.oldest > this.#oldUpTo(kind) || kind.claiming) return
      kind.claiming = this.#claim(kind).finally(() => {
        kind.claiming = null
      })
    } catch (error) {
      telemetry.log?.('debug', `${name}_recovery_failed`, { reason: String(error) })
    }
  }

  #oldUpTo(kind: Kind): number {
    const { clock, options } = this.#context
    return kind.oldUpTo(clock.now() - options.transferGraceMs)
  }

  /** Another comes as soon as one is over: what can't be finished just now, and takes all its time to fail, keeps few of the others waiting. */
  async #claim(kind: Kind): Promise<void> {
    const { clock, options, telemetry } = this.#context
    const { recoverable, underWay } = kind
    try {
      while (!this.#stopped) {
        const room = options.claimMax - underWay.size
        if (room === 0) {
          await Promise.race(underWay.values())
          // Those that were answered together with it are over then, too.
          await new Promise<void>((resolve) => clock.soon(resolve))
          continue
        }
        const { marks } = kind
        const claimed = await recoverable.intents.claim(this.#oldUpTo(kind), room, [...underWay.keys()])
        // What was claimed by numbers that count no more is left to who finds it.
        if (this.#stopped || kind.marks !== marks) return
        for (const intent of claimed) {
          const { attempt } = intent
          underWay.set(
            attempt,
            this.#recover(recoverable, intent).finally(() => underWay.delete(attempt)),
          )
        }
        if (claimed.length < room) return
      }
    } catch (error) {
      telemetry.log?.('debug', `${recoverable.name}_recovery_failed`, { reason: String(error) })
    }
  }

  async #recover(recoverable: Recoverable, intent: Claimed): Promise<void> {
    const { clock, options, telemetry } = this.#context
    try {
      const what = await recoverable.recover(intent, { deadline: clock.now() + options.timeoutMs })
      telemetry.count?.('holdfast_recoveries_total', { what })
    } catch (error) {
      // Whoever sees it next tries again. What can't be overcome by that, somebody must look at.
      const known = error instanceof HoldfastError && error.retryable
      telemetry.log?.(known ? 'warn' : 'error', `${recoverable.name}_not_recovered`, { reason: String(error) })
    }
  }
}
