import type { AuditedWallet, Audits, Verified } from '../journal/index.js'
import type { Entry } from '../machine/index.js'
import type { Difference } from './causes.js'
import { beginning, checkBeginning, copyOf, take } from './laws.js'

/** One journal being verified: from the beginning, or from where it was verified before. */
export class Reading {
  readonly wallet: AuditedWallet
  readonly full: boolean
  readonly state: Verified
  readonly upTo: number
  breach: Difference | null
  /** All that its entries have moved, also behind a breach: what the accounts on the other side got, with the sign turned. */
  moved: bigint
  entries = 0
  #at: number

  constructor(wallet: AuditedWallet, full: boolean) {
    this.wallet = wallet
    const { verified, row, lastSeq } = wallet
    const known = !full && verified && row && verified.seq <= row.seq && lastSeq === row.seq ? verified : null
    this.full = known === null
    this.state = known ? copyOf(known) : beginning(wallet)
    this.upTo = known ? (row?.seq ?? 0) : lastSeq
    this.moved = BigInt(this.state.available) + BigInt(this.state.reserved)
    this.breach = this.full && row ? checkBeginning(wallet) : null
    this.#at = this.state.seq
  }

  get done(): boolean {
    return this.#at >= this.upTo
  }

  get next(): { ref: string; after: number; upTo: number } {
    return { ref: this.wallet.ref, after: this.#at, upTo: this.upTo }
  }

  /** Fewer than were asked for: there are no more. */
  read(entries: readonly Entry[], asked: number): void {
    const { verified } = this.wallet
    for (const entry of entries) {
      this.moved += BigInt(entry.availableDelta) + BigInt(entry.reservedDelta)
      this.breach ??= take(this.state, entry)
      if (this.full && verified?.seq === entry.seq && verified.head !== entry.hash) {
        this.breach ??= { cause: 'journal_rewritten', seq: entry.seq, expected: verified.head, found: entry.hash }
      }
    }
    this.entries += entries.length
    this.#at = entries.length < asked ? this.upTo : Math.max(this.#at + 1, entries.at(-1)?.seq ?? 0)
  }
}

/** Reads all of them to their ends, many journals at a time. */
export async function readAll(
  audits: Pick<Audits, 'entries'>,
  readings: readonly Reading[],
  { readMax, stretchMax }: { readMax: number; stretchMax: number },
  signal: AbortSignal,
): Promise<void> {
  let open = readings.filter(({ done }) => !done)
  while (open.length > 0) {
    signal.throwIfAborted()
    const some = open.slice(0, readMax)
    const found = await audits.entries(
      some.map(({ next }) => next),
      stretchMax,
    )
    for (const [index, reading] of some.entries()) reading.read(found[index] ?? [], stretchMax)
    open = open.filter(({ done }) => !done)
  }
}
