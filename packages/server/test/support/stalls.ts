/** How long something takes is asked, not how busy the machine is. */

const TICK_MS = 20
const STALLED_MS = 100
const TRIES_MAX = 20

/** Tries it, and again for as long as what fails does so while the machine stands still: this process too can't do anything then. */
export async function unlessStalled(attempt: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    let lastAt = performance.now()
    let longestMs = 0
    const look = () => {
      const now = performance.now()
      longestMs = Math.max(longestMs, now - lastAt)
      lastAt = now
    }
    const ticking = setInterval(look, TICK_MS)
    try {
      return await attempt()
    } catch (error) {
      look()
      if (longestMs < STALLED_MS || tries === TRIES_MAX) throw error
    } finally {
      clearInterval(ticking)
    }
  }
}
