import { CAUSES, type Finding } from './causes.js'

/** Findings that a report lists. More are counted: a list that only grows helps nobody. */
export const FINDINGS_MAX = 1_000

export interface FindingCounts {
  readonly found: number
  readonly repaired: number
  readonly unrepaired: number
}

export interface AuditReport {
  /** The shards that were audited. */
  readonly shards: readonly number[]
  /** Those that somebody else was auditing all the while. */
  readonly busy: readonly number[]
  /** Shards whose wallets in Redis could not be looked at, because Redis was away. Their journals were. */
  readonly blind: readonly number[]
  /** Wallets whose row and journal were compared; entries that were read for it; wallets in Redis that were compared. */
  readonly wallets: number
  readonly entries: number
  readonly hot: number
  /** Wallets in Redis that changed hands at every look; the next audit comes by again. */
  readonly unsettled: number
  readonly findings: readonly Finding[]
  readonly counts: FindingCounts
  /** The same for each tenant of which something was found. */
  readonly tenants: Readonly<Record<string, FindingCounts>>
  readonly durationMs: number
}

const countsOf = (found: number, repaired: number): FindingCounts => ({ found, repaired, unrepaired: found - repaired })
const NOTHING = countsOf(0, 0)
const added = (a: FindingCounts, b: FindingCounts): FindingCounts =>
  countsOf(a.found + b.found, a.repaired + b.repaired)

/** What one shard adds to a report. */
export class Tally {
  readonly findings: Finding[] = []
  readonly #books = new Map<string, { tenant: string; currency: string; wallets: bigint; moved: bigint }>()
  wallets = 0
  entries = 0
  hot = 0
  unsettled = 0
  blind = false
  readonly tenants = new Map<string, FindingCounts>()
  found = 0

  add(finding: Finding): void {
    this.found += 1
    const { found, repaired } = this.tenants.get(finding.tenant) ?? NOTHING
    this.tenants.set(finding.tenant, countsOf(found + 1, repaired + (finding.action === 'repaired' ? 1 : 0)))
    if (this.findings.length < FINDINGS_MAX) this.findings.push(finding)
  }

  /** What a wallet has, and what its entries have moved into it. */
  book(tenant: string, currency: string, wallets: bigint, moved: bigint): void {
    const key = `${tenant}\0${currency}`
    const books = this.#books.get(key) ?? { tenant, currency, wallets: 0n, moved: 0n }
    books.wallets += wallets
    books.moved += moved
    this.#books.set(key, books)
  }

  /** Wallets and the accounts on the other side of their entries must sum up to zero. */
  *unbalancedBooks(shard: number): Generator<Finding> {
    for (const { tenant, currency, wallets, moved } of this.#books.values()) {
      if (wallets === moved) continue
      const finding = {
        cause: 'books_unbalanced',
        shard,
        tenant,
        ref: '',
        field: currency,
        action: 'reported',
      } as const
      yield { ...finding, expected: totalOf(moved), found: totalOf(wallets) }
    }
  }
}

/** A total over many wallets may be larger than a number can say exactly. */
function totalOf(total: bigint): number | string {
  const number = Number(total)
  return Number.isSafeInteger(number) ? number : String(total)
}

export function reportOf(
  tallies: ReadonlyMap<number, Tally>,
  busy: readonly number[],
  durationMs: number,
): AuditReport {
  const all = [...tallies.values()]
  const sum = (read: (tally: Tally) => number): number => all.reduce((total, tally) => total + read(tally), 0)
  const tenants = new Map<string, FindingCounts>()
  for (const tally of all) {
    for (const [tenant, counts] of tally.tenants) tenants.set(tenant, added(tenants.get(tenant) ?? NOTHING, counts))
  }
  return {
    shards: [...tallies.keys()],
    busy,
    blind: [...tallies].filter(([, { blind }]) => blind).map(([shard]) => shard),
    wallets: sum(({ wallets }) => wallets),
    entries: sum(({ entries }) => entries),
    hot: sum(({ hot }) => hot),
    unsettled: sum(({ unsettled }) => unsettled),
    findings: all.flatMap(({ findings }) => findings).slice(0, FINDINGS_MAX),
    counts: [...tenants.values()].reduce(added, NOTHING),
    tenants: Object.fromEntries(tenants),
    durationMs: Math.round(durationMs),
  }
}

/** May a repair go by the journal? */
export function isDecided({ cause }: Pick<Finding, 'cause'>): boolean {
  return CAUSES[cause].decides === 'journal'
}
