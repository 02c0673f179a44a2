import { type Clock, jitteredMs } from './clock.js'

export interface CircuitParts {
  /** Nothing worked for so long although it was tried: then it is away. */
  readonly patienceMs: number
  readonly probe: () => Promise<unknown>
  readonly onChange: (open: boolean) => void
}

/**
 * Whether something we depend on is there. Failures that go on for longer than our patience, with no success in between, open it: one
 * lost connection takes many calls with it at once, and says little; a call that got no answer says as much as it waited for one.
 * While it is open nobody waits for what won't come; a probe closes it again.
 */
export class Circuit {
  readonly #clock: Clock
  readonly #parts: CircuitParts
  #open = false
  #workedAt = Number.NEGATIVE_INFINITY
  #doubtedAt: number | undefined
  #tries = 0
  #cancel: (() => void) | undefined
  #closed = false

  constructor(clock: Clock, parts: CircuitParts) {
    this.#clock = clock
    this.#parts = parts
  }

  get open(): boolean {
    return this.#open
  }

  /** `begunAt`: since when the call that failed was under way. */
  failed(begunAt = this.#clock.now()): void {
    if (this.#open || this.#closed) return
    this.#doubtedAt ??= Math.max(begunAt, this.#workedAt)
    if (this.#clock.now() - this.#doubtedAt < this.#parts.patienceMs) return
    this.#open = true
    this.#tries = 0
    this.#parts.onChange(true)
    this.#schedule()
  }

  worked(): void {
    this.#doubtedAt = undefined
    this.#workedAt = this.#clock.now()
    if (!this.#open) return
    this.#open = false
    this.#cancel?.()
    this.#parts.onChange(false)
  }

  close(): void {
    this.#closed = true
    this.#cancel?.()
  }

  #schedule(): void {
    const waitMs = 100 + jitteredMs(this.#clock, this.#tries, 100, 1_000)
    this.#cancel = this.#clock.after(
      waitMs,
      () => {
        this.#tries += 1
        this.#parts.probe().then(
          () => this.worked(),
          () => {
            if (this.#open && !this.#closed) this.#schedule()
          },
        )
      },
      true,
    )
  }
}
