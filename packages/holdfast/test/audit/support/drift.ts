/** Ways to damage what Redis and Postgres hold, as no part of the product ever would. */
import { Redis } from 'ioredis'
import pg from 'pg'
import { freshDatabase, freshRedis } from '../../../../../test/servers.js'
import { type ConnectOptions, Holdfast } from '../../../src/index.js'

/** The place of each number in `core`: see lua/wallet/state.lua. */
const CORE = {
  epoch: 0,
  seq: 1,
  at: 2,
  available: 3,
  reserved: 4,
  limit: 5,
  due: 6,
  since: 7,
  open: 8,
  acked: 9,
  clock: 12,
  ring: 13,
}
const NUMBERS_AT = 3

export interface Grounds {
  readonly redis: Redis
  readonly postgres: pg.Client
  readonly options: ConnectOptions & { redis: string; postgres: string }
  connect(more?: Partial<ConnectOptions>): Promise<Holdfast>
  close(): Promise<void>
}

/** Servers with data of their own. Nobody tends anything by itself, unless a test says so. */
export async function grounds(): Promise<Grounds> {
  const options = { redis: await freshRedis(), postgres: await freshDatabase() }
  const redis = new Redis(options.redis)
  const postgres = new pg.Client(options.postgres)
  await postgres.connect()
  // As a superuser may: what guards the journal against changes is off for this connection.
  await postgres.query("SET session_replication_role = replica; SET search_path = 'holdfast'")
  const open: Holdfast[] = []
  return {
    redis,
    postgres,
    options,
    async connect(more = {}) {
      const hf = await Holdfast.connect({
        ...options,
        shards: 2,
        audit: false,
        engine: { sweepEveryMs: 600_000 },
        // A machine that stands still for a moment is no reason to leave a wallet to Postgres, and what Redis has of it to nobody.
        redisOptions: { commandTimeoutMs: 20_000 },
        ...more,
      })
      open.push(hf)
      return hf
    },
    async close() {
      await Promise.all(open.map((hf) => hf.close()))
      redis.disconnect()
      await postgres.end()
    },
  }
}

/** The keys of all wallets in Redis. */
export const walletKeys = (redis: Redis): Promise<string[]> => redis.keys('hf:*:wallet:v1:*')

export async function refOf(postgres: pg.Client, id: string): Promise<string> {
  const { rows } = await postgres.query('SELECT ref FROM wallets WHERE id = $1', [id])
  return rows[0].ref.replaceAll('-', '')
}

export async function keyOf({ redis, postgres }: Grounds, id: string): Promise<string> {
  const ref = await refOf(postgres, id)
  const key = (await walletKeys(redis)).find((one) => one.endsWith(ref))
  if (!key) throw new Error(`${id} is not in Redis`)
  return key
}

/** Changes a number of a wallet's state in Redis behind everybody's back. */
export function tamper(on: Grounds, id: string, field: keyof typeof CORE, by: number): Promise<void> {
  return rewrite(on, id, field, (number) => number + by)
}

/** Puts another one in its place. */
export function overwrite(on: Grounds, id: string, field: keyof typeof CORE, number: number): Promise<void> {
  return rewrite(on, id, field, () => number)
}

async function rewrite(
  on: Grounds,
  id: string,
  field: keyof typeof CORE,
  change: (number: number) => number,
): Promise<void> {
  const key = await keyOf(on, id)
  const core = (await on.redis.hgetBuffer(key, 'core')) as Buffer
  const at = NUMBERS_AT + 8 * CORE[field]
  core.writeDoubleLE(change(core.readDoubleLE(at)), at)
  await on.redis.hset(key, 'core', core)
}

/** The state is of a life of Redis that is over, with all that is in it: as after a failover that lost nothing. */
export async function endLife(on: Grounds, id: string): Promise<void> {
  const key = await keyOf(on, id)
  const core = (await on.redis.hgetBuffer(key, 'core')) as Buffer
  core.write('-'.repeat(32), NUMBERS_AT + 14 * 8)
  await on.redis.hset(key, 'core', core)
}

/** Postgres forgets the last entries of a wallet, with all that it knew because of them. */
export async function forgetEntries(on: Grounds, id: string, entries: number): Promise<void> {
  const ref = await refOf(on.postgres, id)
  await on.postgres.query(
    `DELETE FROM entries WHERE wallet = $1 AND seq > (SELECT seq - ${entries} FROM wallets WHERE ref = $1)`,
    [ref],
  )
  await on.postgres.query(
    `UPDATE wallets w SET seq = e.seq, head = e.hash, at = e.at, available = e.available, reserved = e.reserved
     FROM entries e WHERE w.ref = $1 AND e.wallet = $1 AND e.seq = w.seq - ${entries}`,
    [ref],
  )
}

/** Changes a number of an open hold: amount, captured, left, expires at, refunded. */
export async function tamperHold(on: Grounds, id: string, hold: string, number: number, by: number): Promise<void> {
  const key = await keyOf(on, id)
  const bytes = (await on.redis.hgetBuffer(key, `h:${hold}`)) as Buffer
  bytes.writeDoubleLE(bytes.readDoubleLE(8 * number) + by, 8 * number)
  await on.redis.hset(key, `h:${hold}`, bytes)
}
