import { chmodSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type PostgresHandle, startPostgres } from '@holdfast/services'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { freshRedis } from '../../../../test/servers.js'
import { type ConnectOptions, Holdfast, type HoldfastError, type Receipt, type Wallet } from '../../src/index.js'
import { refusal, until } from './support/paths.js'

/** A real Postgres goes away, in the ways in which they do, under callers who go on asking. */
const TIMEOUT_MS = 3_000

let server: PostgresHandle
let hf: Holdfast
let wallet: Wallet
let schemas = 0

beforeAll(async () => {
  server = await startPostgres({ durable: false })
})
afterAll(() => server.stop())
beforeEach(async () => {
  schemas += 1
  hf = await connect()
  wallet = hf.wallet('w')
  await wallet.open({ currency: 'usd' })
  await wallet.credit(1_000_000, { key: 'in', durability: 'memory' })
  await until(() => hf.health().backlog === 0)
})
afterEach(() => hf.close())

async function connect(options: Partial<ConnectOptions> = {}): Promise<Holdfast> {
  return Holdfast.connect({
    redis: await freshRedis(),
    postgres: server.url,
    schema: `away_${schemas}`,
    timeout: TIMEOUT_MS,
    postgresOptions: { connectTimeoutMs: 3_000, statementTimeoutMs: 5_000, answerTimeoutMs: 6_000 },
    // Of Redis nothing is to be seen here, though the machine stand still for a moment.
    redisOptions: { commandTimeoutMs: 20_000 },
    engine: { sweepEveryMs: 600_000, postgresPatienceMs: 500, decideWithinMs: 20_000 },
    ...options,
  })
}

const standbySignal = () => join(server.folder, 'data', 'standby.signal')

const WAYS = {
  'is killed': { go: () => server.kill(), come: () => server.restart() },
  hangs: { go: async () => server.pause(), come: async () => server.resume() },
  'is a replica': {
    go: async () => {
      await server.kill()
      writeFileSync(standbySignal(), '')
      chmodSync(standbySignal(), 0o666)
      await server.restart()
    },
    // Not promoted: it was a mistake, and becomes what it was.
    come: async () => {
      await server.kill()
      rmSync(standbySignal())
      await server.restart()
    },
  },
}

describe.each(Object.entries(WAYS))('while Postgres %s', (_, { go, come }) => {
  it('nothing is acknowledged, callers hear so in time, and the same keys settle it later', async () => {
    await go()
    const heard = new Map<string, Receipt | HoldfastError>()
    const late: number[] = []
    const call = async (key: string): Promise<void> => {
      const started = performance.now()
      heard.set(key, await wallet.debit(1, { key }).catch((error: HoldfastError) => error))
      late.push(performance.now() - started - TIMEOUT_MS)
    }
    for (let round = 0; round < 12; round += 1) {
      await Promise.all([call(`${round} a`), call(`${round} b`)])
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    for (const answer of heard.values()) expect(answer).toMatchObject({ retryable: true })
    expect(Math.max(...late)).toBeLessThan(2_500)
    // Once it is known to be away nobody waits, and nothing is decided that nobody could remember.
    expect([...heard.values()].at(-1)).toMatchObject({ code: 'unavailable', status: 503 })
    expect(hf.health()).toMatchObject({ postgres: 'away', stopped: null })
    expect(hf.health().backlog).toBeLessThan(24)

    await come()
    for (const key of heard.keys()) {
      await until(() => wallet.debit(1, { key }).then(Boolean, () => false))
    }
    expect(await wallet.get()).toMatchObject({ available: 1_000_000 - heard.size, seq: 1 + heard.size })
    await until(() => hf.health().postgres === 'up' && hf.health().backlog === 0)
    expect(hf.health()).toMatchObject({ postgres: 'up', stopped: null, backlog: 0 })
  }, 90_000)
})

describe('what is acknowledged from memory, while Postgres hangs', () => {
  it('goes on up to the backlog, then it is refused; it is drained in order, and memory stays bounded all the while', async () => {
    const backlog = 2_000
    schemas += 1
    const limits = { backlog, backlogPerWallet: 400, operations: 1_000 }
    const bounded = await connect({ limits, timeout: 30_000 })
    const wallets = Array.from({ length: 10 }, (_, n) => bounded.wallet(`m${n}`))
    const metadata = 'x'.repeat(2_000)
    for (const one of wallets) {
      await one.open({ currency: 'usd' })
      await one.credit(1, { key: 'first', durability: 'memory' })
    }
    await until(() => bounded.health().backlog === 0)
    server.pause()
    const before = await heapBytes()
    const told = new Map<string, string[]>(wallets.map(({ id }) => [id, []]))
    const refused = new Map<string, number>()
    let most = 0
    for (let round = 0; round < 200; round += 1) {
      await Promise.all(
        Array.from({ length: 200 }, async (_, n) => {
          const one = wallets[n % 10] as Wallet
          const key = `${round}-${n}`
          try {
            const receipt = await one.credit(1, { key, durability: 'memory', metadata })
            told.get(one.id)?.push(`${receipt.entry.seq} ${key}`)
          } catch (error) {
            const { code, limit } = error as HoldfastError & { limit?: number }
            refused.set(`${code} ${limit}`, (refused.get(`${code} ${limit}`) ?? 0) + 1)
          }
        }),
      )
      most = Math.max(most, bounded.health().backlog)
    }
    // 40,000 asked for; with all of them in memory it would be a hundred.
    expect((await heapBytes()) - before).toBeLessThan(30_000_000)
    const acknowledged = [...told.values()].reduce((sum, { length }) => sum + length, 0)
    expect(acknowledged).toBeGreaterThanOrEqual(backlog)
    // What was let in before it was full may still be decided then: at most what is under way.
    expect(most).toBeLessThanOrEqual(backlog + 1_000)
    expect(acknowledged + [...refused.values()].reduce((sum, n) => sum + n, 0)).toBe(40_000)
    expect([...refused.keys()].sort()).toEqual(
      [`unavailable ${backlog}`, 'unavailable 400'].slice(0, refused.size).sort(),
    )
    expect(await refusal(wallets[0]?.credit(1, { key: 'ledger' }) as Promise<Receipt>)).toMatchObject({
      retryable: true,
    })

    server.resume()
    await until(() => bounded.health().backlog === 0, 20_000)
    for (const one of wallets) {
      const entries = await one.entries({ limit: 1_000 })
      const journal = entries.map(({ seq, key }) => `${seq} ${key}`).filter((entry) => !entry.endsWith('first'))
      const byCallers = told.get(one.id)?.sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10))
      expect(journal.filter((entry) => !entry.endsWith('ledger'))).toEqual(byCallers)
    }
    await bounded.close()
  }, 60_000)
})

it('comes back by itself after a restart in the middle of everything, with every answer true', async () => {
  const answers: { key: string; receipt: Receipt | null }[] = []
  let over = false
  const callers = Array.from({ length: 8 }, async (_, caller) => {
    for (let n = 0; !over; n += 1) {
      const key = `${caller} ${n}`
      const receipt = await wallet.debit(1, { key }).catch(() => null)
      answers.push({ key, receipt })
      if (!receipt) await new Promise((resolve) => setTimeout(resolve, 20))
    }
  })
  for (let round = 0; round < 3; round += 1) {
    await until(() => answers.length > 200 * (round + 1), 20_000)
    await server.restart()
  }
  await until(() => answers.slice(-20).every(({ receipt }) => receipt), 20_000)
  over = true
  await Promise.all(callers)
  const client = new pg.Client(server.url)
  await client.connect()
  const { rows } = await client.query(`SELECT key, encode(hash, 'hex') AS hash FROM away_${schemas}.entries`)
  await client.end()
  const journal = new Map(rows.map(({ key, hash }) => [key, hash]))
  for (const { key, receipt } of answers) if (receipt) expect(journal.get(key)).toBe(receipt.entry.hash)
  expect(hf.health().stopped).toBeNull()
}, 120_000)

/** What is left when the garbage is gone. */
async function heapBytes(): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  await new Promise((resolve) => setImmediate(resolve))
  collect()
  return process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers
}
