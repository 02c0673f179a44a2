import { HoldfastError } from '../errors/index.js'
import { type FoundHold, type HoldReading, holdAfter, type MadeHold } from '../journal/index.js'
import type { Entry as MachineEntry } from '../machine/index.js'
import { decidedSince, type HoldState, holdStateOf, lookAt, PAGE_NAMES, type ReadOptions } from './reading.js'
import { reading } from './reads.js'
import { type Entry, entryOf } from './receipt.js'
import { tellHold, tellStep } from './telling.js'
import type { Tenant } from './tenant.js'
import * as check from './validate.js'

const STEPS_MAX = 10_000
const STEPS_DEFAULT = 1_000

export interface ExplainOptions extends ReadOptions {
  /** Steps after this seq. Default 0: from the beginning. */
  readonly after?: number
  /** How many steps to tell, 1 to 10,000. Sums are always those of all steps. Default 1,000. */
  readonly limit?: number
}

/** Where a hold's money came from and went to. `reserved + beyond = charged + returned + left`, in every step and in all. */
export interface HoldMoney {
  /** Out of the available balance into the hold. */
  readonly reserved: number
  /** Charged out of the available balance, because the hold did not cover it. */
  readonly beyond: number
  /** Charged in all. In a step it is negative where a settle took back what was charged before. */
  readonly charged: number
  /** Back into the available balance, unused. */
  readonly returned: number
  /** Given back later of what was charged. */
  readonly refunded: number
}

export interface HoldStep extends HoldMoney {
  readonly entry: Entry
  /** Still reserved after this step. */
  readonly left: number
  /** Decided, and not in the journal yet. */
  readonly pending: boolean
  readonly text: string
}

/** What happened to a hold's money, entry by entry, and where it is now. */
export interface HoldExplanation {
  readonly hold: HoldState
  readonly currency: string
  /** `spent = charged − refunded`: what is gone for good. `back = returned + refunded`: what is in the available balance again. */
  readonly money: HoldMoney & { readonly left: number; readonly spent: number; readonly back: number }
  readonly steps: readonly HoldStep[]
  /** There are more steps than were asked for: go on `after` the last one's seq. */
  readonly more: boolean
  /** All of it in plain English, a line a step. */
  readonly text: string
}

const NOTHING: HoldMoney = { reserved: 0, beyond: 0, charged: 0, returned: 0, refunded: 0 }

export async function explainHold(
  tenant: Tenant,
  walletId: string,
  id: string,
  given: unknown,
): Promise<HoldExplanation> {
  const options = check.options('options', given, PAGE_NAMES)
  const { after = 0, limit = STEPS_DEFAULT } = options
  const from = check.integer('after', after, 0, Number.MAX_SAFE_INTEGER - 1)
  const most = check.integer('limit', limit, 1, STEPS_MAX)
  const pending = check.flag('pending', options.pending)
  return reading(tenant, options, async (stop) => {
    const { ref } = tenant.keys.of(walletId)
    const look = pending ? await lookAt(tenant, walletId) : null
    const found = await tenant.reader.findHold(ref, id)
    if (!found) throw new HoldfastError('wallet_not_found')
    const story = new Story(found.wallet.currency, from, most)
    if (found.made) await tellCommitted(tenant, ref, { ...found, made: found.made }, story, stop)
    for (const entry of decidedSince(look, found.wallet)) if (entry.hold === id) story.add(entry, true)
    return story.end(walletId)
  })
}

async function tellCommitted(
  { reader }: Tenant,
  ref: string,
  found: FoundHold & { made: MadeHold },
  story: Story,
  stop: AbortSignal,
): Promise<void> {
  for await (const entries of reader.entriesOf(ref, found, stop)) {
    for (const entry of entries) story.add(entry, false)
  }
}

/** Follows the money through the entries of one hold, and keeps the page of steps that was asked for. */
class Story {
  readonly #currency: string
  readonly #after: number
  readonly #most: number
  readonly #steps: HoldStep[] = []
  #hold: HoldReading | null = null
  #money = NOTHING
  #lastSeq = 0
  #more = false

  constructor(currency: string, after: number, most: number) {
    this.#currency = currency
    this.#after = after
    this.#most = most
  }

  add(entry: MachineEntry, pending: boolean): void {
    if (entry.seq <= this.#lastSeq) return
    this.#lastSeq = entry.seq
    const before = this.#hold
    const hold = holdAfter(before, entry)
    const money = moneyOf(before, hold, entry)
    this.#hold = hold
    this.#money = {
      reserved: this.#money.reserved + money.reserved,
      beyond: this.#money.beyond + money.beyond,
      charged: this.#money.charged + money.charged,
      returned: this.#money.returned + money.returned,
      refunded: this.#money.refunded + money.refunded,
    }
    if (entry.seq <= this.#after) return
    if (this.#steps.length === this.#most) {
      this.#more = true
      return
    }
    const later = hold.expiresAt !== before?.expiresAt ? hold.expiresAt : 0
    const text = tellStep(entry, { ...money, left: hold.left, captured: hold.captured, later }, this.#currency)
    this.#steps.push({ entry: entryOf(entry), ...money, left: hold.left, pending, text })
  }

  end(walletId: string): HoldExplanation {
    if (!this.#hold) throw new HoldfastError('hold_not_found')
    const hold = holdStateOf(this.#hold)
    const { charged, returned, refunded } = this.#money
    const money = { ...this.#money, left: hold.left, spent: charged - refunded, back: returned + refunded }
    const told = { hold, currency: this.#currency, money, steps: this.#steps, more: this.#more }
    return { ...told, text: tellHold(walletId, told) }
  }
}

/**
 * Read off the numbers and not off the kind, so that it holds for every kind of entry: what the hold grew by was reserved, and what else
 * the available balance gained or lost was returned to it or charged to it directly. No entry does both.
 */
function moneyOf(before: HoldReading | null, after: HoldReading, entry: MachineEntry): HoldMoney {
  if (entry.kind === 'refund') return { ...NOTHING, refunded: entry.amount }
  const reserved = after.amount - (before?.amount ?? 0)
  const gained = entry.availableDelta + reserved
  return {
    reserved,
    beyond: Math.max(0, -gained),
    charged: after.captured - (before?.captured ?? 0),
    returned: Math.max(0, gained),
    refunded: 0,
  }
}
