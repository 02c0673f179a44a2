/** The two journals that the contract is held to, and wallets to write into them. */
import { SimDatabase } from '../../../../sim/database.js'
import { SimIntents, SimPayments } from '../../../../sim/intents.js'
import { SimJournal, type Statement } from '../../../../sim/journal.js'
import { freshDatabase } from '../../../../test/servers.js'
import {
  type Filed,
  type Journal,
  type Open,
  type PaymentIntent,
  type PaymentIntents,
  PostgresIntents,
  PostgresJournal,
  PostgresPayments,
  type Raise,
  type Snapshot,
  type TransferIntents,
  type Verdict,
} from '../../src/journal/index.js'
import {
  apply,
  type Command,
  command,
  decide,
  type Entry,
  genesisHash,
  hashEntry,
  type WalletState,
} from '../../src/machine/index.js'
import { Postgres, PostgresError } from '../../src/postgres/index.js'
import type { Reconcilable } from '../../src/reconcile/index.js'

export interface Subject {
  readonly journal: Journal & Reconcilable
  readonly intents: TransferIntents
  readonly payments: PaymentIntents
  /** What the table of payments has, the oldest first. */
  openPayments(): Promise<Open<PaymentIntent>[]>
  /** Afterwards every wallet's epoch belongs to an earlier timeline of the server. */
  leaveTimeline(): Promise<void>
  /** Somebody keeps this wallet's row locked while that is done. In the simulator it is the first that a statement would write. */
  whileLocked<T>(ref: string, work: () => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** Both raise epochs by one, so that they can be compared. */
export const SUBJECTS: Record<string, () => Promise<Subject>> = {
  Postgres: async () => {
    const url = await freshDatabase()
    const postgres = new Postgres(url, { lockTimeoutMs: 500 })
    const holder = new Postgres(url)
    return {
      journal: new PostgresJournal(postgres, () => 1),
      intents: new PostgresIntents(postgres),
      payments: new PostgresPayments(postgres),
      openPayments: () => readPayments(postgres),
      leaveTimeline: () => run(postgres, 'UPDATE wallets SET epoch = epoch - 1000000000000'),
      whileLocked: (ref, work) =>
        holder.transaction(async (tx) => {
          await tx.execute('lock', `SELECT FROM wallets WHERE ref = '${ref}' FOR UPDATE`)
          return work()
        }),
      close: async () => {
        await holder.close()
        await postgres.close()
      },
    }
  },
  'the simulator': async () => {
    const database = new SimDatabase({ now: () => Date.now() })
    let [locked, waited] = [false, false]
    const statement: Statement = async (_name, writes, run) => {
      waited = locked && writes && !waited
      if (waited) throw new PostgresError('retry', 'locked', { sqlstate: '55P03' })
      return run(locked)
    }
    return {
      journal: new SimJournal(database, statement),
      intents: new SimIntents(database),
      payments: new SimPayments(database),
      openPayments: async () => database.payments.open,
      leaveTimeline: async () => {
        database.timeline += 1
      },
      whileLocked: async (_ref, work) => {
        locked = true
        return work().finally(() => {
          locked = false
        })
      },
      close: async () => {},
    }
  },
}

async function readPayments(postgres: Postgres): Promise<Open<PaymentIntent>[]> {
  const numbers = ['amount', 'attempt', 'per_buyer']
  const rows = await postgres.transaction((tx) =>
    tx.execute<Record<string, string>>('read', 'SELECT * FROM payments ORDER BY attempt'),
  )
  return rows.map(({ name: _, ...row }) => {
    const read = Object.entries(row).map(([column, value]) => {
      if (numbers.includes(column)) return [column === 'per_buyer' ? 'perBuyer' : column, Number(value)]
      return [column, ['id', 'wallet', 'bucket'].includes(column) ? value.replaceAll('-', '') : value]
    })
    return Object.fromEntries(read)
  })
}

export async function run(postgres: Postgres, sql: string): Promise<void> {
  await postgres.transaction((tx) => tx.execute('test', sql))
}

let refs = 0

export function newRef(): string {
  refs += 1
  return `${process.pid.toString(16)}${(2 * refs).toString(16).padStart(8, '0')}`.padStart(32, 'a')
}

/** Decides entries for one wallet, as a process would that has loaded it. */
export class Writer {
  readonly ref: string
  state: WalletState
  now = 1_000_000

  constructor(ref: string, state: WalletState) {
    this.ref = ref
    this.state = state
  }

  /** The entries that a command makes; the last is its own. */
  all(given: Parameters<typeof command>[0]): Entry[] {
    return this.decide(command(given))
  }

  decide(given: Command): Entry[] {
    return decide(this.state, given, this.now).entries
  }

  make(given: Parameters<typeof command>[0]): Entry {
    const entry = this.all(given).at(-1)
    if (!entry) throw new Error(`${given.kind} was rejected`)
    return entry
  }

  credit(key: string, amount = 10): Entry {
    return this.make({ kind: 'credit', key, amount })
  }

  hold(key: string, amount = 1, ttlMs = 60_000): Entry {
    return this.make({ kind: 'hold', key, amount, ttlMs })
  }

  /** Another process with the same state. */
  fork(): Writer {
    const other = new Writer(this.ref, structuredClone(this.state))
    other.now = this.now
    return other
  }

  file(...entries: Entry[]): Filed[] {
    return entries.map((entry) => ({ ref: this.ref, entry, deadline: 0 }))
  }
}

/** A wallet that exists, under an epoch that was raised for the writer. */
export async function newWallet(journal: Journal, tenant = 'test', currency = 'EUR'): Promise<Writer> {
  const ref = newRef()
  const head = genesisHash(ref, currency)
  await journal.open({ ref, tenant, id: `id-${ref}`, currency, creditLimit: 0, metadata: '', head })
  return load(journal, ref)
}

export async function load(journal: Journal, ref: string): Promise<Writer> {
  const loaded = await raise(journal, ref)
  if (!loaded) throw new Error('There is no such wallet')
  const writer = new Writer(ref, loaded.state)
  writer.now = Math.max(writer.now, loaded.state.at)
  return writer
}

export async function verdictsOf(journal: Journal, filed: readonly Filed[]): Promise<string[]> {
  return (await append(journal, filed)).map(({ type }) => type)
}

export async function append(journal: Journal, filed: readonly Filed[]): Promise<Verdict[]> {
  return (await journal.append(filed)).verdicts
}

/** The same entry with something changed, and a hash that fits the change. */
export function forged(entry: Entry, changes: Partial<Entry>): Entry {
  const other = { ...entry, ...changes }
  return { ...other, hash: hashEntry(other) }
}

/** As the journal gives an entry back: the bounds belong to the wallet's row. */
export function kept(entry: Entry): Entry {
  return { ...entry, due: 0, since: 0 }
}

export function replay(state: WalletState, entries: readonly Entry[]): WalletState {
  for (const entry of entries) apply(state, entry)
  return state
}

/** One wallet's epoch is raised. */
export async function raise(
  journal: Pick<Journal, 'raise'>,
  ref: string,
  { epochMin = 0, memory = false, known = null }: Partial<Omit<Raise, 'ref'>> = {},
): Promise<Snapshot | null> {
  const [snapshot] = await journal.raise([{ ref, epochMin, memory, known }])
  // One alone waits.
  if (snapshot === 'locked') throw new Error('One alone was told that it is locked')
  return snapshot ?? null
}
