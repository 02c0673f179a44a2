import { HoldfastError } from '../errors/index.js'
import type { Tenant } from './tenant.js'
import { within } from './waiting.js'

/**
 * What callers ask of Postgres themselves: reading, and opening wallets. It goes over the same connections as what the engine writes, first come,
 * first served: 3,000 reads of 1,000 entries each let nothing be written for ten seconds, and Postgres was taken to be away. So only some are
 * under way at a time, so many wait for their turn, and more are refused.
 */
export class Reads {
  readonly #atOnce: number
  readonly #waitingMax: number
  readonly #waiting = new Set<() => void>()
  #running = 0

  constructor(atOnce: number, waitingMax: number) {
    this.#atOnce = atOnce
    this.#waitingMax = waitingMax
  }

  /** One of them asks Postgres one thing after the other. `stop` ends the waiting; what is under way keeps its place until it has its answer. */
  async take<T>(stop: AbortSignal, work: () => Promise<T>): Promise<T> {
    if (this.#running < this.#atOnce) this.#running += 1
    else await this.#turn(stop)
    try {
      return await work()
    } finally {
      this.#leave()
    }
  }

  async #turn(stop: AbortSignal): Promise<void> {
    if (this.#waiting.size >= this.#waitingMax) {
      const message = `${this.#waiting.size} reads wait for their turn, the most allowed`
      throw new HoldfastError('unavailable', message, { limit: this.#waitingMax })
    }
    await new Promise<void>((resolve, reject) => {
      const begin = () => {
        stop.removeEventListener('abort', giveUp)
        resolve()
      }
      const giveUp = () => {
        this.#waiting.delete(begin)
        reject(stop.reason)
      }
      this.#waiting.add(begin)
      stop.addEventListener('abort', giveUp, { once: true })
    })
  }

  /** The place goes to whoever waits longest, and is free only where nobody does. */
  #leave(): void {
    const [next] = this.#waiting
    if (!next) {
      this.#running -= 1
      return
    }
    this.#waiting.delete(next)
    next()
  }
}

/** As `within`, for what goes to Postgres without the engine: its turn comes first, and the time that this takes counts. */
export function reading<T>(
  { reads, timeoutMs }: Pick<Tenant, 'reads' | 'timeoutMs'>,
  options: Record<string, unknown>,
  work: (stop: AbortSignal) => Promise<T>,
): Promise<T> {
  return within(timeoutMs, options, (stop) => reads.take(stop, () => work(stop)))
}
