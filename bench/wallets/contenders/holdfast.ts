import { type ConnectOptions, Holdfast, HoldfastError } from 'holdfast'
import { Redis } from 'ioredis'
import type { Wallet } from '../../../packages/holdfast/src/api/wallet.js'
import {
  type Contender,
  FUNDS,
  HOLD_AMOUNT,
  HOLD_TTL_MS,
  type MemoryUse,
  type Place,
  SETTLE_TOTAL,
} from '../../harness/contender.js'
import { median } from '../../harness/statistics.js'
import { PostgresBooks } from './postgres-books.js'

const SEEDED_AT_ONCE = 64
/** Long enough that several rounds of pruning lie within: what is kept of results rises and falls. */
const MEMORY_STEPS = 24
const MEMORY_PAIRS_A_STEP = 8
const OPEN_HOLDS = 64

/** Nobody listens there. */
const NO_REDIS = 'redis://127.0.0.1:1'

/** The library as everybody uses it: `Holdfast.connect`, and nothing tuned. */
export class HoldfastContender implements Contender {
  readonly #place: Place
  readonly #durability: 'ledger' | 'memory'
  readonly #tuned: Partial<ConnectOptions>
  #holdfast: Holdfast | undefined

  constructor(place: Place, durability: 'ledger' | 'memory', tuned: Partial<ConnectOptions> = {}) {
    this.#place = place
    this.#durability = durability
    this.#tuned = tuned
  }

  wallet(number: number): Wallet {
    return (this.#holdfast as Holdfast).wallet(`wallet-${number}`)
  }

  async open(): Promise<void> {
    const { redisUrl, databaseUrl } = this.#place
    this.#holdfast = await Holdfast.connect({
      redis: redisUrl,
      postgres: databaseUrl,
      durability: this.#durability,
      ...this.#tuned,
    })
  }

  async close(): Promise<void> {
    await this.#holdfast?.close()
  }

  async seed(wallets: number): Promise<void> {
    let next = 0
    const seeder = async (): Promise<void> => {
      for (let number = next++; number < wallets; number = next++) {
        await this.wallet(number).open({ currency: 'usd' })
        await this.wallet(number).credit(FUNDS, { key: 'seed' })
      }
    }
    await Promise.all(Array.from({ length: SEEDED_AT_ONCE }, seeder))
  }

  hold(wallet: number, key: string): Promise<unknown> {
    return this.wallet(wallet).hold(HOLD_AMOUNT, { key, ttl: HOLD_TTL_MS })
  }

  async settle(_: number, key: string, held: unknown): Promise<void> {
    await (held as Awaited<ReturnType<Wallet['hold']>>).settle(SETTLE_TOTAL, { key })
  }

  isBusy(error: unknown): boolean {
    return error instanceof HoldfastError && error.retryable
  }

  /** On wallets of its own, with money of its own, so that the books of the run stay as they are. */
  async measureMemory(): Promise<MemoryUse> {
    const { redisUrl, databaseUrl } = this.#place
    const tenant = 'memory-use'
    const holdfast = await Holdfast.connect({ redis: redisUrl, postgres: databaseUrl, tenant })
    const redis = new Redis(redisUrl)
    try {
      const wallet = holdfast.wallet('measured')
      await wallet.open({ currency: 'usd' })
      await wallet.credit(FUNDS, { key: 'seed' })
      const key = (await redis.keys(`hf:${tenant}:*:wallet:*`))[0] as string
      let pair = 0
      const inUse = async (): Promise<number> => {
        const bytes: number[] = []
        for (let step = 0; step < MEMORY_STEPS; step += 1) {
          const pairs = Array.from({ length: MEMORY_PAIRS_A_STEP }, async () => {
            const hold = await wallet.hold(HOLD_AMOUNT, { key: `pair-${pair++}-of-memory-use`, ttl: HOLD_TTL_MS })
            await hold.settle(SETTLE_TOTAL, { key: `${hold.id}-end` })
          })
          await Promise.all(pairs)
          // The first half only brings the wallet to where it stays.
          if (step >= MEMORY_STEPS / 2) bytes.push((await redis.memory('USAGE', key, 'SAMPLES', 0)) as number)
        }
        return bytes.reduce((sum, one) => sum + one, 0) / bytes.length
      }
      const without = await inUse()
      const open = Array.from({ length: OPEN_HOLDS }, (_, number) =>
        wallet.hold(HOLD_AMOUNT, { key: `open-${number}-of-memory-use`, ttl: HOLD_TTL_MS }),
      )
      await Promise.all(open)
      const withHolds = await inUse()
      const seen: number[] = []
      for (const one of await this.#someWallets(redis)) {
        seen.push((await redis.memory('USAGE', one, 'SAMPLES', 0)) as number)
      }
      return { bytesPerWallet: median(seen), bytesPerOpenHold: (withHolds - without) / OPEN_HOLDS }
    } finally {
      redis.disconnect()
      await holdfast.close()
    }
  }

  async #someWallets(redis: Redis): Promise<string[]> {
    const [, keys] = await redis.scan(0, 'MATCH', 'hf:default:*:wallet:*', 'COUNT', 2_000)
    return keys.slice(0, 500)
  }
}

/** The same, and Redis is away all the time: everything goes through Postgres. */
export class FallbackContender extends HoldfastContender {
  constructor(place: Place) {
    super({ ...place, redisUrl: NO_REDIS }, 'ledger')
  }
}

export class HoldfastBooks extends PostgresBooks {
  constructor(place: Place) {
    super(place, {
      schema: 'holdfast',
      count: "SELECT sum(seq) AS count FROM holdfast.wallets WHERE tenant = 'default'",
      tally: `SELECT (SELECT count(*) FROM holdfast.entries) AS entries,
                     (SELECT sum(available::numeric + reserved) FROM holdfast.wallets) AS money`,
    })
  }
}
