import type { Durability, Engine, Outcome } from '../engine/index.js'
import type { Journal, JournalReader } from '../journal/index.js'
import type { Locks } from '../lock/index.js'
import { type Command, command } from '../machine/index.js'
import type { Keys } from '../redis/index.js'
import type { Sequencer } from '../sequencer/index.js'
import type { Reads } from './reads.js'
import * as check from './validate.js'

/** What every operation takes beside what it is about. */
export interface OperationOptions {
  /** Makes the operation safe to repeat: the same key gives the first answer again. 1 to 255 characters, not beginning with `~`. */
  readonly key: string
  /** JSON of up to 4 kB, kept with the entry. */
  readonly metadata?: unknown
  /** The other side of the books; not `wallets` or `transfers`, which they have of their own. Default: `funding` for credits, `revenue` for everything else. */
  readonly counter?: string
  /** When it is acknowledged: committed in Postgres (`ledger`), or decided in Redis (`memory`). Default: that of `connect`. */
  readonly durability?: Durability
  /** How long to wait, ms. The operation may still happen: the same key is safe to try again. Default: that of `connect`. */
  readonly timeout?: number
  /** Ends the waiting when it fires, with `aborted`. The operation may still happen. */
  readonly signal?: AbortSignal
  /** This key was tried before and the answer is not known: the journal is asked first. Default false. */
  readonly retry?: boolean
}

/** Every operation knows them, also one that has no use for some: whoever wraps calls gives all of them the same. */
export const OPERATION_NAMES = check.namesOf<OperationOptions>({
  key: true,
  metadata: true,
  counter: true,
  durability: true,
  timeout: true,
  signal: true,
  retry: true,
})

/** What options of an operation have beside those of all. */
export type Own<T extends OperationOptions> = Omit<T, keyof OperationOptions>

/** One tenant's way to the engine: everything that wallets and holds need. */
export interface Tenant {
  readonly keys: Keys
  readonly engine: Engine
  readonly journal: Journal
  readonly reader: JournalReader
  readonly sequencer: Sequencer
  readonly locks: Locks
  readonly durability: Durability
  readonly reads: Reads
  /** How long reading and locking wait, unless the caller says otherwise. */
  readonly timeoutMs: number
}

/** `key`: one of the engine's own, where the caller gives none. */
type Asked = Pick<Command, 'kind'> &
  Partial<Pick<Command, 'key' | 'hold' | 'amount' | 'ttlMs' | 'beyond' | 'of' | 'charge' | 'facts' | 'meter'>>

/** What every operation may be told, checked. */
export function checkOptions(given: unknown, durability: Durability, known = OPERATION_NAMES) {
  const options = check.options('options', given, known)
  const chosen =
    options.durability === undefined
      ? durability
      : check.oneOf('durability', options.durability, ['ledger', 'memory'] as const)
  return {
    key: options.key,
    metadata: check.metadata(options.metadata),
    counter: options.counter === undefined ? undefined : check.account('counter', options.counter),
    memory: chosen === 'memory',
    timeoutMs: check.timeoutMs(options.timeout),
    signal: check.signal(options.signal),
    retry: check.flag('retry', options.retry),
  }
}

/** Checks what is common to all operations, and hands the command to the engine. Throws at once where something is wrong. */
export function perform(
  { keys, engine, durability }: Tenant,
  walletId: string,
  asked: Asked,
  given: unknown,
  known = OPERATION_NAMES,
): Promise<Outcome> {
  const options = checkOptions(given, durability, known)
  const full = command({
    kind: asked.kind,
    key: asked.key ?? check.key(options.key),
    hold: asked.hold,
    amount: asked.amount,
    ttlMs: asked.ttlMs,
    beyond: asked.beyond,
    of: asked.of,
    meter: asked.meter,
    metadata: options.metadata,
    counter: options.counter,
  })
  return engine.submit(keys.of(walletId), full, options)
}
