import type pg from 'pg'
import { command, decide, genesisHash, type WalletState } from '../../packages/holdfast/src/machine/index.js'

const BATCH = 5_000

export interface Seeds {
  /** Numbers of wallets: `first` included, `end` not. */
  readonly first: number
  readonly end: number
  readonly tenant: string
  /** What each is credited with. */
  readonly amount: number
  /** And verified by an audit after that. */
  readonly audited: boolean
  idOf(number: number): string
  refOf(id: string): string
}

/** Puts wallets into Postgres past the product, as it would have left them: opened, credited once, and used by nobody since. */
export async function seedWallets(client: pg.Client, seeds: Seeds): Promise<void> {
  const { first, end, tenant, amount, audited } = seeds
  await client.query("SET search_path = 'holdfast'; SET synchronous_commit = off")
  for (let from = first; from < end; from += BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, end - from) }, (_, n) => walletOf(seeds, from + n))
    const column = (read: (wallet: (typeof batch)[0]) => string | number) => batch.map(read)
    await client.query(
      `INSERT INTO wallets (ref, tenant, id, currency, opened_at, initial_limit, genesis, epoch, owner, seq, head, at, available, reserved,
                            credit_limit, status, due, since)
       SELECT ref, $6, id, 'usd', at, 0, genesis, timeline_epoch() + 1, 'postgres', 1, hash, at, $7, 0, 0, 'active', 0, 0
       FROM unnest($1::uuid[], $2::text[], $3::bytea[], $4::bytea[], $5::bigint[]) AS w(ref, id, genesis, hash, at)`,
      [
        column(({ ref }) => ref),
        column(({ id }) => id),
        column(({ genesis }) => `\\x${genesis}`),
        column(({ entry }) => `\\x${entry.hash}`),
        column(({ entry }) => entry.at),
        tenant,
        amount,
      ],
    )
    await client.query(
      `INSERT INTO entries (wallet, seq, epoch, at, amount, available_delta, reserved_delta, available, reserved, kind, hash, key, counter, params)
       SELECT ref, 1, $4, at, $7, $7, 0, $7, 0, 'credit', hash, 'seed', $5, $6
       FROM unnest($1::uuid[], $2::bytea[], $3::bigint[]) AS e(ref, hash, at)`,
      [
        column(({ ref }) => ref),
        column(({ entry }) => `\\x${entry.hash}`),
        column(({ entry }) => entry.at),
        EPOCH,
        batch[0]?.entry.counter,
        batch[0]?.entry.params,
        amount,
      ],
    )
    await client.query(
      `INSERT INTO audits (shard, wallet, seq, head, epoch, at, available, full_at)
       SELECT shard_of(ref, shards), ref, 1, CASE WHEN $4 THEN hash END, $5, at, $6, CASE WHEN $4 THEN clock_ms() ELSE 0 END
       FROM unnest($1::uuid[], $2::bytea[], $3::bigint[]) AS e(ref, hash, at), settings`,
      [
        column(({ ref }) => ref),
        column(({ entry }) => `\\x${entry.hash}`),
        column(({ entry }) => entry.at),
        audited,
        EPOCH,
        amount,
      ],
    )
  }
  await client.query('ANALYZE wallets, entries, audits')
}

const EPOCH = 1_000_000_000_001

function walletOf({ amount, idOf, refOf }: Seeds, n: number) {
  const id = idOf(n)
  const ref = refOf(id)
  const genesis = genesisHash(ref, 'usd')
  const state: WalletState = {
    epoch: EPOCH,
    seq: 0,
    head: genesis,
    at: 1_700_000_000_000 + n,
    available: 0,
    reserved: 0,
    creditLimit: 0,
    status: 'active',
    due: 0,
    since: 0,
    holds: new Map(),
    base: 0,
    refundedByEntry: new Map(),
    closedHolds: new Map(),
    stock: null,
  }
  const [entry] = decide(state, command({ kind: 'credit', key: 'seed', amount }), 0).entries
  if (!entry) throw new Error('A credit was refused')
  return { ref, id, genesis, entry }
}
