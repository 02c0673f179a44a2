import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import {
  type Books,
  type Contender,
  FUNDS,
  HOLD_AMOUNT,
  HOLD_TTL_MS,
  type Place,
  SETTLE_TOTAL,
  type Tally,
} from '../../harness/contender.js'

const LOCK_MS = 5_000
/** Short, in favour of this way: libraries wait 200 ms before they try a lock again. */
const RETRY_MS = 2
const RESULT_MS = 60_000

// KEYS wallet, result, entries   ARGV kind, key, hold, amount, expires at, how long the result is kept
const APPLY = `
if redis.call('EXISTS', KEYS[2]) == 1 then return redis.call('GET', KEYS[2]) end
local state = redis.call('HMGET', KEYS[1], 'seq', 'available', 'reserved', 'hold:' .. ARGV[3])
local seq, available, reserved = tonumber(state[1]) + 1, tonumber(state[2]), tonumber(state[3])
local amount = tonumber(ARGV[4])
if ARGV[1] == 'hold' then
  if available < amount then return redis.error_reply('insufficient') end
  available, reserved = available - amount, reserved + amount
  redis.call('HSET', KEYS[1], 'hold:' .. ARGV[3], ARGV[4])
else
  if not state[4] then return redis.error_reply('no such hold') end
  local held = tonumber(state[4])
  available, reserved = available + held - amount, reserved - held
  redis.call('HDEL', KEYS[1], 'hold:' .. ARGV[3])
end
local after = { string.format('%.0f', seq), string.format('%.0f', available), string.format('%.0f', reserved) }
redis.call('HSET', KEYS[1], 'seq', after[1], 'available', after[2], 'reserved', after[3])
local result = table.concat(after, ' ')
redis.call('SET', KEYS[2], result, 'PX', ARGV[6])
redis.call('XADD', KEYS[3], 'MAXLEN', '~', 64, '*', 'kind', ARGV[1], 'key', ARGV[2], 'hold', ARGV[3], 'amount', ARGV[4],
           'expires', ARGV[5], 'after', result)
return result`

const UNLOCK = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`

interface Scripts {
  apply(...args: (string | number)[]): Promise<string>
  unlock(key: string, token: string): Promise<number>
}

/** The common way: take a lock with SET NX, run a script, let go of the lock. Everything is in Redis, and only there. */
export class RedisLockContender implements Contender {
  readonly #place: Place
  #redis: (Redis & Scripts) | undefined

  constructor(place: Place) {
    this.#place = place
  }

  async open(): Promise<void> {
    const redis = new Redis(this.#place.redisUrl)
    redis.defineCommand('apply', { numberOfKeys: 3, lua: APPLY })
    redis.defineCommand('unlock', { numberOfKeys: 1, lua: UNLOCK })
    await redis.ping()
    this.#redis = redis as Redis & Scripts
  }

  async close(): Promise<void> {
    this.#redis?.disconnect()
  }

  async seed(wallets: number): Promise<void> {
    const redis = this.#redis as Redis
    for (let from = 0; from < wallets; from += 1_000) {
      const pipeline = redis.pipeline()
      for (let number = from; number < Math.min(wallets, from + 1_000); number += 1) {
        pipeline.hset(walletKey(number), { seq: 1, available: FUNDS, reserved: 0 })
      }
      await pipeline.exec()
    }
  }

  async hold(wallet: number, key: string): Promise<unknown> {
    await this.#locked(wallet, 'hold', key, key, HOLD_AMOUNT, Date.now() + HOLD_TTL_MS)
    return key
  }

  async settle(wallet: number, key: string, held: unknown): Promise<void> {
    await this.#locked(wallet, 'settle', key, held as string, SETTLE_TOTAL, 0)
  }

  isBusy(): boolean {
    return false
  }

  async #locked(wallet: number, kind: string, key: string, hold: string, amount: number, expires: number) {
    const redis = this.#redis as Redis & Scripts
    const token = randomUUID()
    while ((await redis.set(`lock:{${wallet}}`, token, 'PX', LOCK_MS, 'NX')) === null) {
      await sleep(RETRY_MS * (0.5 + Math.random()))
    }
    try {
      const keys = [walletKey(wallet), `result:{${wallet}}:${key}`, `entries:{${wallet}}`]
      await redis.apply(...keys, kind, key, hold, amount, expires, RESULT_MS)
    } finally {
      await redis.unlock(`lock:{${wallet}}`, token)
    }
  }
}

const walletKey = (wallet: number) => `wallet:{${wallet}}`

/** Nothing but Redis knows; each wallet counts its entries in its seq. */
export class RedisLockBooks implements Books {
  readonly #redis: Redis

  constructor({ redisUrl }: Place) {
    this.#redis = new Redis(redisUrl)
    this.#redis.on('error', () => {})
  }

  async count(): Promise<null> {
    return null
  }

  async tally(): Promise<Tally> {
    // A scan may return a key twice.
    const keys = new Set<string>()
    for await (const some of this.#redis.scanStream({ match: 'wallet:*', count: 1_000 })) {
      for (const key of some as string[]) keys.add(key)
    }
    const all = [...keys]
    let entries = 0
    let money = 0n
    for (let from = 0; from < all.length; from += 1_000) {
      const pipeline = this.#redis.pipeline()
      for (const key of all.slice(from, from + 1_000)) pipeline.hmget(key, 'seq', 'available', 'reserved')
      for (const [, state] of (await pipeline.exec()) ?? []) {
        const [seq, available, reserved] = state as [string, string, string]
        entries += Number(seq)
        money += BigInt(available) + BigInt(reserved)
      }
    }
    return { entries, money }
  }

  async bytesOnDisk(): Promise<{ tables: number; log: number }> {
    return { tables: Number.NaN, log: Number.NaN }
  }

  async close(): Promise<void> {
    this.#redis.disconnect()
  }
}
