import type { Clock } from '../../../src/engine/clock.js'

/** Time that passes when it is told to. */
export class TestClock implements Clock {
  timers: { at: number; run: () => void }[] = []
  #now = 1_000

  now(): number {
    return this.#now
  }

  timeOfDay(): number {
    return this.#now
  }

  after(ms: number, run: () => void): () => void {
    const timer = { at: this.#now + ms, run }
    this.timers.push(timer)
    return () => {
      this.timers = this.timers.filter((one) => one !== timer)
    }
  }

  soon(run: () => void): void {
    this.after(0, run)
  }

  random(): number {
    return 0
  }

  pass(ms: number): void {
    const until = this.#now + ms
    for (;;) {
      const [next] = this.timers.sort((a, b) => a.at - b.at)
      if (!next || next.at > until) break
      this.timers.shift()
      this.#now = next.at
      next.run()
    }
    this.#now = until
  }
}
