import type { Entry } from '../machine/index.js'
import { isOfData, type Postgres } from '../postgres/index.js'
import { bytesArray, textArray } from './array-text.js'
import type {
  AuditBounds,
  AuditedRow,
  AuditedWallet,
  AuditPage,
  Audits,
  FoundRow,
  KeptQuestion,
  KeptRow,
  LoadableState,
  RebuildPage,
  Remembered,
  Stretch,
  Verified,
  VerifiedHold,
} from './audits.js'
import { epochStep } from './epochs.js'
import { type EntryRow, type HoldRow, readEntry, readState, type StateRow } from './rows.js'

interface PageRow {
  kind: 'page' | 'same' | 'other'
  ref: string | null
  tenant: string | null
  currency: string | null
  wallets: number
  money: string
  wallet: WalletJson | null
  clock: string | null
}

interface WalletJson {
  genesis: string | null
  openedAt: number | null
  initialLimit: number | null
  row: AuditedRow | null
  verified: (Omit<Verified, 'holds'> & { fullAt: number; holds: Record<string, VerifiedHold> | null }) | null
  last: number | null
}

interface FindingRow {
  id: string
  wallet: string | null
  ref: string
  shard: number
  cause: string
  field: string
  seq: string
  expected: FoundRow['expected']
  found: FoundRow['found']
  action: string
  first_at: string
  last_at: string
  times: string
}

/** What was not found again for so long is gone. */
const FINDINGS_KEPT_MS = 90 * 24 * 60 * 60 * 1_000

/** What the auditor keeps in Postgres, and reads there. See sql/0005_audits.sql. */
export class PostgresAudits implements Audits {
  readonly #postgres: Postgres

  constructor(postgres: Postgres) {
    this.#postgres = postgres
  }

  async page(shard: number, after: string, most: number, bounds: AuditBounds): Promise<AuditPage> {
    const { overdueBefore, fullBefore, only, ends } = bounds
    const values = [shard, after, most, overdueBefore, fullBefore, only ? textArray(only) : null, ends]
    const rows = await this.#postgres.query<PageRow>('auditPage', values)
    const page = rows.find(({ kind }) => kind === 'page')
    return {
      wallets: page?.wallets ?? 0,
      last: page?.ref ?? null,
      clock: Number(page?.clock ?? 0),
      others: rows.filter(({ kind }) => kind === 'other').map(readAudited),
      same: rows
        .filter(({ kind }) => kind === 'same')
        .map(({ tenant, currency, money }) => ({
          tenant: tenant ?? '',
          currency: currency ?? '',
          money: BigInt(money),
        })),
    }
  }

  async entries(stretches: readonly Stretch[], most: number): Promise<Entry[][]> {
    const rows = await this.#postgres.query<EntryRow & { n: number }>('auditEntries', [
      textArray(stretches.map(({ ref }) => ref)),
      `{${stretches.map(({ after }) => after)}}`,
      `{${stretches.map(({ upTo }) => upTo)}}`,
      most,
    ])
    const found: Entry[][] = stretches.map(() => [])
    for (const row of rows) found[row.n - 1]?.push(readEntry(row, ''))
    return found
  }

  async states(refs: readonly string[]): Promise<LoadableState[]> {
    try {
      return await this.#states(refs)
    } catch (error) {
      if (!isOfData(error)) throw error
      if (refs.length === 1) return this.#withoutHolds(refs)
    }
    // One of them has a checkpoint that nobody can read. The others are none the worse for it.
    const found: LoadableState[] = []
    for (const ref of refs) found.push(...(await this.states([ref])))
    return found
  }

  async #withoutHolds(refs: readonly string[]): Promise<LoadableState[]> {
    const rows = await this.#postgres.query<StateRow & { ref: string }>('readWallets', [textArray(refs)])
    return rows.map((row) => ({ ref: row.ref, memory: row.memory, clock: 0, state: readState(row, []), damaged: true }))
  }

  async #states(refs: readonly string[]): Promise<LoadableState[]> {
    const rows = await this.#postgres.query<StateRow & { ref: string; holds: HoldRow[] | null }>('auditStates', [
      textArray(refs),
    ])
    return rows.map((row) => ({
      ref: row.ref,
      memory: row.memory,
      clock: Number(row.clock),
      state: readState(row, row.holds ?? []),
    }))
  }

  async remember(shard: number, wallets: readonly Remembered[]): Promise<void> {
    if (wallets.length === 0) return
    const numbers = (read: (verified: Verified) => number) => `{${wallets.map(({ verified }) => read(verified))}}`
    await this.#postgres.query('auditRemember', [
      shard,
      textArray(wallets.map(({ ref }) => ref)),
      numbers(({ seq }) => seq),
      bytesArray(wallets.map(({ verified }) => verified.head)),
      numbers(({ epoch }) => epoch),
      numbers(({ at }) => at),
      numbers(({ available }) => available),
      numbers(({ reserved }) => reserved),
      numbers(({ creditLimit }) => creditLimit),
      textArray(wallets.map(({ verified }) => verified.status)),
      numbers(dueOf),
      textArray(wallets.map(({ verified }) => JSON.stringify(Object.fromEntries(verified.holds)))),
      `{${wallets.map(({ full }) => full)}}`,
    ])
  }

  async mendRow(ref: string, found: AuditedRow, right: AuditedRow): Promise<boolean> {
    const rows = await this.#postgres.query('auditMendRow', [
      ref,
      found.epoch,
      found.seq,
      Buffer.from(found.head, 'hex'),
      found.available,
      found.reserved,
      right.seq,
      Buffer.from(right.head, 'hex'),
      right.at,
      right.available,
      right.reserved,
      right.creditLimit,
      right.status,
      right.due,
      right.since,
      right.epoch,
      epochStep(),
    ])
    return rows.length > 0
  }

  async dropCheckpoint(ref: string): Promise<void> {
    await this.#postgres.query('dropCheckpoint', [ref])
  }

  async keep(findings: readonly FoundRow[]): Promise<void> {
    await this.#postgres.query('keepFindings', [JSON.stringify(findings), FINDINGS_KEPT_MS])
  }

  /** What was found of a tenant, in the order in which it was first. */
  async kept({ tenant, after, prefix, since, most }: KeptQuestion): Promise<KeptRow[]> {
    const rows = await this.#postgres.query<FindingRow>('listFindings', [tenant, after, prefix, since, most])
    return rows.map(({ field, seq, first_at, last_at, ...row }) => ({
      ...row,
      id: Number(row.id),
      tenant,
      ...(field !== '' && { field }),
      ...(seq !== '0' && { seq: Number(seq) }),
      firstAt: Number(first_at),
      lastAt: Number(last_at),
      times: Number(row.times),
    }))
  }

  /** Notes wallets that nobody told the auditor of. Returns the last one looked at; null: that was all. */
  async survey(after: string, most: number): Promise<string | null> {
    const [row] = await this.#postgres.query<{ last: string | null }>('auditSurvey', [after, most])
    return row?.last ?? null
  }

  async rebuildPage(
    shard: number,
    after: string,
    most: number,
    wanted: { usedSince: number; all: boolean },
  ): Promise<RebuildPage> {
    const [row] = await this.#postgres.query<{
      wallets: number
      last: string | null
      wanted: [string, string, number][] | null
    }>('rebuildPage', [shard, after, most, wanted.usedSince, wanted.all])
    return {
      wallets: row?.wallets ?? 0,
      last: row?.last ?? null,
      wanted: (row?.wanted ?? []).map(([ref, tenant, epoch]) => ({ ref, tenant, epoch })),
    }
  }

  /** Each shard has its row, from which on its audits are counted. */
  async prepare(shards: number, everyMs: number): Promise<void> {
    await this.#postgres.query('auditPrepare', [shards, everyMs])
  }

  /** Takes a shard, if nobody has it; null for whichever has waited longest, if its time has come. Null: there is none. */
  async claim(shard: number | null, holder: string, leaseMs: number, everyMs: number): Promise<number | null> {
    const [row] = await this.#postgres.query<{ shard: number }>('auditClaim', [shard, holder, leaseMs, everyMs])
    return row?.shard ?? null
  }

  async renew(shard: number, holder: string, leaseMs: number): Promise<boolean> {
    return (await this.#postgres.query('auditRenew', [shard, holder, leaseMs])).length > 0
  }

  async release(shard: number, holder: string, done: boolean): Promise<void> {
    await this.#postgres.query('auditRelease', [shard, holder, done])
  }

  /** For how long the shard has waited that has waited longest. */
  async waitedMs(): Promise<number> {
    const [row] = await this.#postgres.query<{ waited: string }>('auditWaiting', [])
    return Number(row?.waited ?? 0)
  }
}

/** When the next hold runs out; 0: none is open. */
function dueOf({ holds }: { readonly holds: ReadonlyMap<string, { readonly expiresAt: number }> }): number {
  let due = 0
  for (const { expiresAt } of holds.values()) if (due === 0 || expiresAt < due) due = expiresAt
  return due
}

function readAudited({ ref, tenant, currency, wallet }: PageRow): AuditedWallet {
  const { genesis, openedAt, initialLimit, row, verified, last } = wallet as WalletJson
  return {
    ref: ref as string,
    tenant: tenant ?? '',
    currency: currency ?? '',
    genesis: genesis ?? '',
    openedAt: openedAt ?? 0,
    initialLimit: initialLimit ?? 0,
    row,
    lastSeq: last ?? 0,
    verified: verified && { ...verified, holds: readHolds(verified.holds) },
    fullAt: verified?.fullAt ?? 0,
  }
}

/** As they were remembered. What is not like that was not written here: then the journal is found to differ, and read from the beginning. */
function readHolds(remembered: unknown): Map<string, VerifiedHold> {
  const holds = new Map<string, VerifiedHold>()
  if (typeof remembered !== 'object' || remembered === null) return holds
  for (const [hold, numbers] of Object.entries(remembered)) {
    if (typeof numbers === 'object' && numbers !== null) holds.set(hold, numbers as VerifiedHold)
  }
  return holds
}
