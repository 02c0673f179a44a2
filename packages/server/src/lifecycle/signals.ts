import { constants } from 'node:os'

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

/**
 * Resolves at the first signal to stop. A second one ends the process at once: whoever asks twice does not want to wait.
 * (Private servers end with this process in any case.)
 */
export function untilSignal(): Promise<(typeof SIGNALS)[number]> {
  return new Promise((resolve) => {
    let asked = false
    for (const signal of SIGNALS) {
      process.on(signal, () => {
        if (asked) process.exit(128 + constants.signals[signal])
        asked = true
        resolve(signal)
      })
    }
  })
}
