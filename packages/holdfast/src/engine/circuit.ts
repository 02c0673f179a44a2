import { type Clock, jitteredMs } from './clock.js'

/**
 * Whether something we depend on is there. One failure opens it (the layer below has tried several times by then); while it is open
 * nobody waits for what won't come; a probe closes it again.
 */
export class Circuit {
  readonly #clock: Clock
  readonly #probe: () => Promise<unknown>
  readonly #onChange: (open: boolean) => void
  #open = false
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
    this.#open = true
    this.#tries = 0
    this.#onChange(true)
    this.#schedule()
  }

  worked(): void {
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
