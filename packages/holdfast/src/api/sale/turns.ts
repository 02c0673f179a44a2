/**
 * So much is done at a time, and whoever waits comes by turns: the first of each name, then the second of each. So nobody waits for all that
 * somebody else has asked for.
 */
export class Turns {
  readonly #most: number
  readonly #waiting = new Map<string, (() => void)[]>()
  #running = 0

  constructor(most: number) {
    this.#most = most
  }

  async take<T>(name: string, work: () => Promise<T>): Promise<T> {
    if (this.#running < this.#most) this.#running += 1
    else await new Promise<void>((begin) => this.#waitingOf(name).push(begin))
    try {
      return await work()
    } finally {
      this.#leave()
    }
  }

  #waitingOf(name: string): (() => void)[] {
    const waiting = this.#waiting.get(name) ?? []
    this.#waiting.set(name, waiting)
    return waiting
  }

  /** The place goes to whoever is next, and is free only where nobody waits: who comes at this moment does not get ahead of them. */
  #leave(): void {
    const [next] = this.#waiting
    if (!next) {
      this.#running -= 1
      return
    }
    const [name, waiting] = next
    this.#waiting.delete(name)
    const begin = waiting.shift()
    if (waiting.length > 0) this.#waiting.set(name, waiting)
    begin?.()
  }
}
