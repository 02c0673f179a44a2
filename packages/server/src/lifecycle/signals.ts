import { constants } from 'node:os'

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

/** Ctrl-C under npm arrives twice, from the terminal and passed on by npm: that is still asking once. */
const SAME_REQUEST_MS = 500

/**
 * Resolves at the first signal to stop. A second one ends the process at once: whoever asks twice does not want to wait.
 * (Private servers end with this process in any case.)
 */
export function untilSignal(): Promise<(typeof SIGNALS)[number]> {
  return new Promise((resolve) => {
    let askedAt: number | undefined
    for (const signal of SIGNALS) {
      process.on(signal, () => {
        const now = performance.now()
        askedAt ??= now
        if (now - askedAt > SAME_REQUEST_MS) process.exit(128 + constants.signals[signal])
        resolve(signal)
      })
    }
  })
}
