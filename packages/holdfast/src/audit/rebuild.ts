import type { RebuildPage } from '../journal/index.js'
import type { Place } from '../redis/index.js'
import type { Sequencer } from '../sequencer/index.js'

const NOBODY = '0'.repeat(32)
const PAGE_MAX = 500
/** Half of what the engine loads at a time: the other half is for those who need a wallet now. */
const LOADS_MAX = 64

export interface RebuildParts {
  readonly sequencer: Pick<Sequencer, 'look'>
  page(shard: number, after: string, most: number, wanted: { usedSince: number; all: boolean }): Promise<RebuildPage>
  placeOf(tenant: string, ref: string): Place
  /** Loads a wallet, unless Redis has it under this epoch or a later one. */
  touch(place: Place, epochMin: number): Promise<unknown>
  now(): number
}

export interface RebuildProgress {
  readonly shard: number
  readonly done: number
  readonly of: number
  readonly wallets: number
  readonly loaded: number
}

export interface RebuildReport {
  readonly shards: readonly number[]
  /** Wallets that were looked at in Postgres; of those, the ones that belong into Redis are the next three together. */
  readonly wallets: number
  readonly loaded: number
  /** Redis had them already. */
  readonly there: number
  readonly failed: number
  readonly durationMs: number
}

export interface RebuildDemand {
  readonly shards: readonly number[]
  /** Wallets that were used since then, ms since 1970, and all that have open holds. */
  readonly usedSince: number
  /** Or every wallet there is. */
  readonly all: boolean
  /** Also those that Redis has and would be trusted. */
  readonly force: boolean
  readonly signal: AbortSignal
  onProgress?(progress: RebuildProgress): void
}

/**
 * Fills Redis from Postgres, beside whatever else goes on. Each wallet is loaded as the engine loads it when it is needed: under a raised
 * epoch, and not if Redis has it. So nothing has to stop, and nothing is lost if this does.
 */
export async function rebuild(parts: RebuildParts, demand: RebuildDemand): Promise<RebuildReport> {
  const startedAt = parts.now()
  const counts = { wallets: 0, loaded: 0, there: 0, failed: 0 }
  for (const [done, shard] of demand.shards.entries()) {
    let after: string | null = NOBODY
    while (after !== null) {
      demand.signal.throwIfAborted()
      const page: RebuildPage = await parts.page(shard, after, PAGE_MAX, demand)
      counts.wallets += page.wallets
      await load(parts, page.wanted, demand, counts)
      demand.onProgress?.({ shard, done, of: demand.shards.length, wallets: counts.wallets, loaded: counts.loaded })
      after = page.last
    }
  }
  return { shards: demand.shards, ...counts, durationMs: Math.round(parts.now() - startedAt) }
}

async function load(
  { sequencer, placeOf, touch }: RebuildParts,
  wanted: RebuildPage['wanted'],
  { force, signal }: RebuildDemand,
  counts: { loaded: number; there: number; failed: number },
): Promise<void> {
  const waiting = wanted.values()
  const worker = async (): Promise<void> => {
    for (const { ref, tenant, epoch } of waiting) {
      signal.throwIfAborted()
      const place = placeOf(tenant, ref)
      // Throws when Redis is away: there is nothing to fill then.
      const look = await sequencer.look(place, 0, '', 0)
      if (!force && look.why === 'trusted' && look.epoch >= epoch) {
        counts.there += 1
        continue
      }
      await touch(place, force ? epoch + 1 : epoch).then(
        () => {
          counts.loaded += 1
        },
        () => {
          counts.failed += 1
        },
      )
    }
  }
  await Promise.all(Array.from({ length: LOADS_MAX }, worker))
}
