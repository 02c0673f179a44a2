import { type Clock, jitteredMs } from './clock.js'

/** What fails within this time of the first failure failed for the same reason. */
const DOUBT_MS = 20

/**
 * Whether something we depend on is there. A failure that is not followed by a success opens it: one lost connection takes many
 * calls with it at once, and says little. While it is open nobody waits for what won't come; a probe closes it again.
 */
export class Circuit {
  readonly #clock: Clock
  readonly #probe: () => Promise<unknown>
  readonly #onChange: (open: boolean) => void
  #open = false
  #doubtedAt: number | undefined
  #tries = 0
  #cancel: (() => void) | undefined
  #closed = false

  constructor(clock: Clock, probe: () => Promise<unknown>, onChange: (open: boolean) => void) {
    this.#clock = clock
    this.#probe = probe
    this.#onChange = onChange
  }

  get open(): boolean {
    return this.#open
  }

  failed(): void {
    if (this.#open || this.#closed) return
    this.#doubtedAt ??= this.#clock.now()
    if (this.#clock.now() - this.#doubtedAt < DOUBT_MS) return
    this.#open = true
    this.#tries = 0
    this.#onChange(true)
    this.#schedule()
  }

  worked(): void {
    this.#doubtedAt = undefined
    if (!this.#open) return
    this.#open = false
    this.#cancel?.()
    this.#onChange(false)
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
        this.#probe().then(
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
