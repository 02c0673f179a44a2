import { HoldfastError } from '../../errors/index.js'
import type { Postgres } from '../../postgres/index.js'
import { FLAG_LIMITS, type Flag, type FlagDefinition } from './definition.js'

/** Flags as they were after change number `revision`. */
export interface FlagSet {
  readonly revision: number
  /** What that change is known by: after Postgres was put back there may be another one of the same number. */
  readonly mark: number
  readonly flags: readonly Flag[]
}

/** What a change of a flag can come to, in Postgres. */
export type StoredChange =
  | { readonly result: 'changed' | 'unchanged'; readonly flag: Flag | null }
  | { readonly result: 'conflict'; readonly flag: Flag | null }
  | { readonly result: 'missing' }

export type FlagChangeKind = 'put' | 'kill' | 'unkill' | 'delete'

/** What a flag said before or after a change. */
export type FlagState = FlagDefinition & Pick<Flag, 'killed'>

/** A line of the history. */
export interface FlagEvent {
  readonly revision: number
  readonly name: string
  readonly kind: FlagChangeKind
  readonly at: Date
  readonly by: string
  readonly why: string | null
  /** Null: there was none. */
  readonly before: FlagState | null
  /** Null: there is none any more. */
  readonly after: FlagState | null
}

export interface StoreChange {
  readonly name: string
  readonly kind: FlagChangeKind
  readonly definition: FlagDefinition | null
  readonly version: number | null
  readonly by: string
  readonly why: string | null
}

type FlagRow = Omit<Flag, 'createdAt' | 'changedAt'> & { createdAt: number; changedAt: number }

interface ChangeRow {
  outcome: 'changed' | 'unchanged' | 'conflict' | 'missing' | 'full'
  flag: FlagRow | null
}

interface EventRow {
  revision: string
  name: string
  kind: FlagChangeKind
  at: string
  made_by: string
  why: string | null
  before: FlagState | null
  after: FlagState | null
}

/** The flags of a tenant in Postgres, where the truth about them is. */
export class FlagStore {
  readonly #postgres: Postgres
  readonly #tenant: string

  constructor(postgres: Postgres, tenant: string) {
    this.#postgres = postgres
    this.#tenant = tenant
  }

  /** All, or the one of this name. */
  async read(name: string | null = null): Promise<FlagSet> {
    const values = [this.#tenant, name]
    const [row] = await this.#postgres.query<{ revision: string; mark: number; flags: FlagRow[] }>('readFlags', values)
    return { revision: Number(row?.revision), mark: Number(row?.mark), flags: (row?.flags ?? []).map(flagOf) }
  }

  async change({ name, kind, definition, version, by, why }: StoreChange): Promise<StoredChange> {
    const given = definition === null ? null : JSON.stringify(definition)
    const limits = [FLAG_LIMITS.flags, FLAG_LIMITS.bytes]
    const values = [this.#tenant, name, kind, given, version, by, why, ...limits]
    const [row] = await this.#postgres.query<ChangeRow>('changeFlag', values)
    const { outcome, flag } = row as ChangeRow
    if (outcome === 'full') throw full()
    return outcome === 'missing' ? { result: 'missing' } : { result: outcome, flag: flag && flagOf(flag) }
  }

  /** The latest first. */
  async history(name: string | null, before: number | null, limit: number): Promise<FlagEvent[]> {
    const rows = await this.#postgres.query<EventRow>('readFlagChanges', [this.#tenant, name, before, limit])
    return rows.map(({ revision, at, made_by: by, ...event }) => ({
      revision: Number(revision),
      name: event.name,
      kind: event.kind,
      at: new Date(Number(at)),
      by,
      why: event.why,
      before: event.before,
      after: event.after,
    }))
  }
}

const flagOf = ({ createdAt, changedAt, ...flag }: FlagRow): Flag => ({
  ...flag,
  createdAt: new Date(createdAt),
  changedAt: new Date(changedAt),
})

function full(): HoldfastError {
  const { flags, bytes } = FLAG_LIMITS
  const message = `Expected at most ${flags} flags of a tenant, of ${bytes} bytes together, got more`
  return new HoldfastError('invalid_argument', message, { limit: flags, limitBytes: bytes })
}
