import { HoldfastError } from '../errors/index.js'
import type { Intents, OpenIntent } from '../journal/index.js'
import { isSale } from '../machine/index.js'
import type { Context } from './context.js'
import type { Moves } from './moves.js'
import type { Patience, Transfers } from './transfers.js'

/**
 * Finishes transfers that others began, and moves between buckets of a sale. Every process looks; who takes one gives it another number, and so the others leave it alone for
 * a while. How long an intent has been lying there is measured by this process's own clock, from when it was first seen: a clock of
 * Postgres that jumps must not make it old before its hold has had its time.
 */
export class TransferRecovery {
  readonly #context: Context
  readonly #intents: Intents
  readonly #transfers: Transfers
  readonly #moves: Moves
  /** When an attempt was first seen. */
  #seen = new Map<number, number>()
  #cancel: (() => void) | undefined
  #working: Promise<void> | undefined
  #stopped = false

  constructor(context: Context, intents: Intents, transfers: Transfers, moves: Moves) {
    this.#context = context
    this.#intents = intents
    this.#transfers = transfers
    this.#moves = moves
  }

  start(): void {
    const { clock, options } = this.#context
    if (this.#stopped) return
    this.#cancel = clock.after(
      options.sweepEveryMs * (0.5 + clock.random()),
      () => {
        this.#working = this.#round().finally(() => this.start())
      },
      true,
    )
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancel?.()
    await this.#working
  }

  async #round(): Promise<void> {
    const { clock, options, postgres, telemetry } = this.#context
    if (postgres.open) return
    try {
      const open = await this.#intents.open(options.claimMax)
      const now = clock.now()
      const seen = new Map(open.map(({ attempt }) => [attempt, this.#seen.get(attempt) ?? now]))
      this.#seen = seen
      const left = open.filter(({ attempt }) => now - (seen.get(attempt) ?? now) >= options.transferGraceMs)
      await Promise.all(left.map((intent) => this.#recover(intent)))
    } catch (error) {
      telemetry.log?.('debug', 'transfer_recovery_failed', { reason: String(error) })
    }
  }

  async #recover(seen: OpenIntent): Promise<void> {
    const { clock, options, telemetry } = this.#context
    try {
      const attempt = await this.#intents.claim(seen.attempt)
      if (attempt === null || this.#stopped) return
      const what = await this.#settle({ ...seen, attempt }, { deadline: clock.now() + options.timeoutMs })
      telemetry.count?.('holdfast_recoveries_total', { what })
    } catch (error) {
      // Whoever sees it next tries again. What can't be overcome by that, somebody must look at.
      const known = error instanceof HoldfastError && error.retryable
      telemetry.log?.(known ? 'warn' : 'error', 'transfer_not_recovered', { reason: String(error) })
    }
  }

  async #settle(intent: OpenIntent, patience: Patience): Promise<string> {
    if (isSale(intent.source)) return this.#moves.settle(intent, patience)
    if (await this.#transfers.isHeld(intent, patience)) {
      const { type } = await this.#transfers.complete(intent, patience)
      return type === 'done' ? 'transfer_finished' : 'transfer_undone'
    }
    this.#transfers.end(intent)
    return 'transfer_dropped'
  }
}
