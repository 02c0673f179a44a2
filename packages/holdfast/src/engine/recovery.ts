import { HoldfastError } from '../errors/index.js'
import type { Context } from './context.js'
import type { Patience } from './intended.js'

/** What lies there, of whichever kind. */
interface Seen {
  readonly attempt: number
}

/** One kind of what others began. */
export interface Recoverable {
  /** In logs. */
  readonly name: string
  readonly intents: { open(most: number): Promise<Seen[]>; claim(attempt: number): Promise<number | null> }
  /** Brings one that was seen there to an end. Which, in metrics. */
  recover(intent: Seen, patience: Patience): Promise<string>
}

interface Kind {
  readonly recoverable: Recoverable
  /** When an attempt was first seen. */
  seen: ReadonlyMap<number, number>
}

/**
 * Finishes what others began. Every process looks; who takes one gives it another number, and so the others leave it alone for a while. How
 * long an intent has been lying there is measured by this process's own clock, from when it was first seen: a clock of Postgres that jumps
 * must not make it old before its hold has had its time.
 */
export class Recovery {
  readonly #context: Context
  readonly #kinds: readonly Kind[]
  #cancel: (() => void) | undefined
  #working: Promise<unknown> | undefined
  #stopped = false

  constructor(context: Context, kinds: readonly Recoverable[]) {
    this.#context = context
    this.#kinds = kinds.map((recoverable) => ({ recoverable, seen: new Map() }))
  }

  start(): void {
    const { clock, options } = this.#context
    if (this.#stopped) return
    this.#cancel = clock.after(
      options.sweepEveryMs * (0.5 + clock.random()),
      () => {
        this.#working = Promise.all(this.#kinds.map((kind) => this.#round(kind))).finally(() => this.start())
      },
      true,
    )
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancel?.()
    await this.#working
  }

  async #round(kind: Kind): Promise<void> {
    const { clock, options, postgres, telemetry } = this.#context
    const { name, intents } = kind.recoverable
    if (postgres.open) {
      // It may come back as it was before, and give the same numbers to others.
      kind.seen = new Map()
      return
    }
    try {
      const open = await intents.open(options.claimMax)
      const now = clock.now()
      const seen = new Map(open.map(({ attempt }) => [attempt, kind.seen.get(attempt) ?? now]))
      kind.seen = seen
      const left = open.filter(({ attempt }) => now - (seen.get(attempt) ?? now) >= options.transferGraceMs)
      await Promise.all(left.map((intent) => this.#recover(kind, intent)))
    } catch (error) {
      telemetry.log?.('debug', `${name}_recovery_failed`, { reason: String(error) })
    }
  }

  async #recover({ recoverable }: Kind, seen: Seen): Promise<void> {
    const { clock, options, telemetry } = this.#context
    try {
      const attempt = await recoverable.intents.claim(seen.attempt)
      if (attempt === null || this.#stopped) return
      const what = await recoverable.recover({ ...seen, attempt }, { deadline: clock.now() + options.timeoutMs })
      telemetry.count?.('holdfast_recoveries_total', { what })
    } catch (error) {
      // Whoever sees it next tries again. What can't be overcome by that, somebody must look at.
      const known = error instanceof HoldfastError && error.retryable
      telemetry.log?.(known ? 'warn' : 'error', `${recoverable.name}_not_recovered`, { reason: String(error) })
    }
  }
}
