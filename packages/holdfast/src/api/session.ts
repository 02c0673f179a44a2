import { randomBytes } from 'node:crypto'
import { HoldfastError } from '../errors/index.js'
import { type Entry, type Meter, readMeter } from '../machine/index.js'
import { type Receipt, receiptOf } from './receipt.js'
import { type Begun, type SessionState, stateOf } from './session-state.js'
import { SessionStream, type StreamOptions } from './stream.js'
import { checkOptions, OPERATION_NAMES, type OperationOptions, perform, type Tenant } from './tenant.js'
import * as check from './validate.js'
import { WAIT_NAMES, type WaitOptions, within } from './waiting.js'

export interface TickOptions extends Omit<OperationOptions, 'key' | 'retry'> {
  /** By units: all that was delivered so far, never a difference. A tick needs it; an end without it charges no more than the last tick. By time: none. */
  readonly total?: number
}

const TICK_NAMES = new Set(['total', ...OPERATION_NAMES])

/** A session as it stood after an operation. */
export interface SessionReceipt extends SessionState {
  readonly receipt: Receipt
}

/** Refusals that mean: it is over. */
const OVER = new Set(['hold_closed', 'hold_expired', 'wallet_closed', 'idempotency_conflict'])
const CLOSES_HOLD = new Set(['settle', 'release', 'expire'])

/**
 * A metered session by its id, which is the key it was begun with: a hold that ticks charge and extend. Making one of these is no I/O;
 * its terms are read from the journal when they are needed first.
 */
export class SessionRef {
  readonly id: string
  readonly walletId: string
  readonly #tenant: Tenant
  #begun: Promise<Begun> | undefined

  constructor(tenant: Tenant, walletId: string, id: string, begun?: Begun) {
    this.#tenant = tenant
    this.walletId = walletId
    this.id = id
    this.#begun = begun && Promise.resolve(begun)
  }

  /**
   * Charges what is due by now, reserves more where that is needed, and keeps the session alive. Safe to repeat, from anywhere: what
   * was charged is not charged again. After the end: what it came to, and no effect.
   */
  async tick(options: TickOptions = {}): Promise<SessionReceipt> {
    const total = this.#check(options)
    return this.#within(options, async (rest) => {
      const begun = await this.#begunFor(total)
      if (begun.terms.counting === 'units' && total === undefined) throw check.invalid('total', 'an integer', 'nothing')
      const key = `~tick:${this.id}:${randomBytes(9).toString('base64url')}`
      return this.#perform('tick', key, begun, total, rest)
    })
  }

  /** Charges what is due, returns the rest, and closes. Again or late: the first answer, and no effect. */
  async end(options: TickOptions = {}): Promise<SessionReceipt> {
    const total = this.#check(options)
    return this.#within(options, async (rest) =>
      this.#perform('end', `~end:${this.id}`, await this.#begunFor(total), total, rest),
    )
  }

  /** As the journal has it. */
  async get(options: WaitOptions = {}): Promise<SessionState> {
    return within(this.#tenant.timeoutMs, check.options('options', options, WAIT_NAMES), async () => {
      const begun = await this.#begin()
      return stateOf(begun, (await this.#lastEntry()) ?? begun.entry)
    })
  }

  /**
   * Hands the chunks of `source` on, and charges what was taken of them: with ticks on the way, and with the end when it is over, however
   * it ends. For sessions by units.
   */
  stream<T>(source: AsyncIterable<T>, options: StreamOptions<T> = {}): SessionStream<T> {
    // Not with its signal: who aborts wants the session ended, and for that its terms are needed.
    const { timeout } = check.options('options', options)
    const begun = () => within(this.#tenant.timeoutMs, { timeout }, () => this.#begin())
    return new SessionStream(this, begun, source, options)
  }

  /** Whatever can be wrong with the options is told before the journal is asked for the terms. */
  #check(options: TickOptions): number | undefined {
    const { total } = check.options('options', options, TICK_NAMES)
    checkOptions(options, this.#tenant.durability, TICK_NAMES)
    return total === undefined ? undefined : check.amount('total', total, 0)
  }

  /** One deadline for all of it: the terms, the operation, and how it ended where it is over. */
  #within<T>(options: TickOptions, work: (options: TickOptions) => Promise<T>): Promise<T> {
    const given = check.options('options', options)
    return within(this.#tenant.timeoutMs, given, (signal) => work({ ...options, signal }))
  }

  async #begunFor(total: number | undefined): Promise<Begun> {
    const begun = await this.#begin()
    if (begun.terms.counting !== 'units' && total !== undefined) {
      throw check.invalid('total', 'none for a session by time', check.show(total))
    }
    return begun
  }

  /** Read once, for all who ask: each of them waits as long as it wants to. */
  #begin(): Promise<Begun> {
    if (!this.#begun) {
      const begun = findBegun(this.#tenant, this.walletId, this.id)
      this.#begun = begun
      begun.catch(() => {
        this.#begun = undefined
      })
    }
    return this.#begun
  }

  async #perform(
    kind: 'tick' | 'end',
    key: string,
    begun: Begun,
    total: number | undefined,
    options: TickOptions,
  ): Promise<SessionReceipt> {
    const { terms, entry } = begun
    // Without a total the units stay as they were charged.
    const meter: Meter = { ...terms, measure: terms.counting === 'units' ? (total ?? 0) : entry.at }
    try {
      const outcome = await perform(
        this.#tenant,
        this.walletId,
        { kind, key, hold: this.id, meter },
        options,
        TICK_NAMES,
      )
      return { ...stateOf(begun, outcome.entry as Entry), receipt: receiptOf(outcome) }
    } catch (error) {
      if (HoldfastError.is(error, 'hold_not_found')) throw new HoldfastError('session_not_found')
      if (!(error instanceof HoldfastError) || !OVER.has(error.code)) throw error
      const last = await this.#lastEntry()
      if (!last || !CLOSES_HOLD.has(last.kind)) throw error
      const receipt = receiptOf({ entry: last, replayed: true, durability: 'ledger' })
      return { ...stateOf(begun, last), receipt }
    }
  }

  #lastEntry(): Promise<Entry | null> {
    const { keys, journal } = this.#tenant
    return journal.holdEntry(keys.ref(this.walletId), this.id)
  }
}

/** A session as it was begun. Operations on it return how it stands after them. */
export class Session extends SessionRef implements SessionState {
  readonly by: SessionState['by']
  readonly startedAt: number
  readonly charged: number
  readonly reserved: number
  readonly left: number
  readonly final: boolean
  readonly runsOutAt: number | null
  readonly unitsLeft: number | null
  readonly expiresAt: number
  readonly ended: boolean
  readonly endedBy: SessionState['endedBy']
  readonly receipt: Receipt

  constructor(tenant: Tenant, walletId: string, begun: Begun, receipt: Receipt) {
    super(tenant, walletId, begun.entry.hold, begun)
    const state = stateOf(begun, begun.entry)
    this.by = state.by
    this.startedAt = state.startedAt
    this.charged = state.charged
    this.reserved = state.reserved
    this.left = state.left
    this.final = state.final
    this.runsOutAt = state.runsOutAt
    this.unitsLeft = state.unitsLeft
    this.expiresAt = state.expiresAt
    this.ended = state.ended
    this.endedBy = state.endedBy
    this.receipt = receipt
  }
}

/** The terms stand in the entry that began the session. One that was acknowledged from memory may not be in the journal yet. */
async function findBegun({ keys, journal, sequencer }: Tenant, walletId: string, id: string): Promise<Begun> {
  const place = keys.of(walletId)
  const wanted = [{ ref: place.ref, key: id }]
  let [entry] = await journal.find(wanted)
  if (!entry) {
    const [row] = await journal.read([place.ref])
    if (!row) throw new HoldfastError('wallet_not_found')
    const look = await sequencer.look(place, row.epoch, '', 0).catch(() => null)
    entry = look?.pending.find(({ entry: { key } }) => key === id)?.entry ?? (await journal.find(wanted))[0]
  }
  if (!entry) throw new HoldfastError('session_not_found')
  const terms = entry.kind === 'hold' ? readMeter(entry.params) : null
  if (!terms)
    throw new HoldfastError('session_not_found', 'What has this id is no metered session', { kind: entry.kind })
  return { terms, entry }
}
