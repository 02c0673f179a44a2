import { HoldfastError } from '../errors/index.js'
import type { Entry } from '../machine/index.js'
import type { Context } from './context.js'

const QUERY_CANCELED = '57014'

/** It took longer than a statement may: where one wallet is loaded, that is a matter of this wallet. */
export function tookTooLong(error: unknown): boolean {
  return HoldfastError.is(error) && error.sqlstate === QUERY_CANCELED
}

/**
 * Has open holds noted, so that who loads a wallet need not read back to the oldest of them. One wallet at a time: the first time may take long
 * where there is much behind it, and connections are for others too.
 */
export class Checkpoints {
  readonly #context: Context
  readonly #wanted = new Set<string>()
  #busy = false
  #stopped = false

  constructor(context: Context) {
    this.#context = context
  }

  /** Of every entry that came into the journal, on whichever path. */
  appended(ref: string, { seq, since }: Entry): void {
    const { checkpointAfter } = this.#context.options
    if (since === 0 || seq - since < checkpointAfter || seq % checkpointAfter !== 0) return
    this.#want(ref)
  }

  /** If that was because there is too much to read, the next one may find less. */
  loadFailed(ref: string, error: unknown): void {
    if (tookTooLong(error)) this.#want(ref)
  }

  /** Nothing more is noted. */
  stop(): void {
    this.#stopped = true
    this.#wanted.clear()
  }

  #want(ref: string): void {
    if (this.#stopped) return
    this.#wanted.add(ref)
    if (!this.#busy) void this.#work()
  }

  async #work(): Promise<void> {
    const { journal, postgres, telemetry } = this.#context
    this.#busy = true
    for (const ref of this.#wanted) {
      this.#wanted.delete(ref)
      // What is left out now comes up again after as many entries.
      if (postgres.open) continue
      await journal.checkpoint(ref).catch((error) => {
        telemetry.log?.('warn', 'checkpoint_failed', { reason: String(error) })
      })
    }
    this.#busy = false
  }
}
