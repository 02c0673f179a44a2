/** Time and chance, handed in: the simulator has its own of both. */
export interface Clock {
  /**
   * Milliseconds since 1970, and never set: deadlines are told to Redis and Postgres as so far from now, so a clock that jumps
   * forward would let an attempt be decided after its caller has given up.
   */
  now(): number
  /**
   * What is believed to be the time of day, ms since 1970: servers' clocks are not believed to be far ahead of it. Never behind `now`, and ahead
   * of it where that has lost time: it stands still while a machine is suspended, and begins wrong before somebody has set the machine's clock.
   */
  timeOfDay(): number
  /** Runs later, once; the result takes it back. A `background` timer does not keep the process alive. */
  after(ms: number, run: () => void, background?: boolean): () => void
  /** Runs when what is happening in this turn of the event loop has happened: what it gathers becomes one batch. */
  soon(run: () => void): void
  /** From 0 up to, not including, 1. */
  random(): number
}

export const systemClock: Clock = {
  now: () => performance.timeOrigin + performance.now(),
  timeOfDay: () => Math.max(systemClock.now(), Date.now()),
  after(ms, run, background = false) {
    const timer = setTimeout(run, ms)
    if (background) timer.unref()
    return () => clearTimeout(timer)
  },
  soon: (run) => void setImmediate(run),
  random: () => Math.random(),
}

/** Full jitter: two who got into each other's way once must not meet again in step. */
export function jitteredMs(clock: Clock, tries: number, baseMs: number, capMs: number): number {
  return clock.random() * Math.min(capMs, baseMs * 2 ** Math.min(tries, 16))
}

export function sleep(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(ms, resolve)
  })
}
