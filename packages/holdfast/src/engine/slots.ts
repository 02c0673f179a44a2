/** So many at a time; others wait for their turn, in the order in which they came. */
export class Slots {
  readonly #waiting: (() => Promise<void>)[] = []
  #free: number

  constructor(slots: number) {
    this.#free = slots
  }

  /** `work` must not fail: nobody would hear of it. */
  add(work: () => Promise<void>): void {
    this.#waiting.push(work)
    if (this.#free > 0) void this.#work()
  }

  async #work(): Promise<void> {
    this.#free -= 1
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) await next()
    this.#free += 1
  }
}
