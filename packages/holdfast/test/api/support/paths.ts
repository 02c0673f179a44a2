/** One test body, two ways through the engine: Redis decides, or Redis was never there and everything runs on Postgres. */
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../../test/servers.js'
import { type ConnectOptions, Holdfast, HoldfastError, type OpenOptions, type Wallet } from '../../../src/index.js'

/** Nobody listens there, so that connecting fails at once. */
export const NO_REDIS = 'redis://127.0.0.1:1'

/**
 * Sweepers stay away, so that what a test sees is what the operation did. So does impatience: on a machine that stands still for a moment
 * Redis would be taken to be away, and a transfer's hold be made twice.
 */
const QUIET = { sweepEveryMs: 600_000, transferHoldWithinMs: 20_000, transferGraceMs: 40_000 }
const PATIENT = { commandTimeoutMs: 20_000, connectTimeoutMs: 20_000 }

export class Path {
  readonly name: 'Redis' | 'Postgres'
  hf!: Holdfast
  redisUrl!: string
  databaseUrl!: string
  #fallbacks = 0
  #decisions = 0
  #wallets = 0
  #keys = 0

  constructor(name: Path['name']) {
    this.name = name
  }

  async connect(options: Partial<ConnectOptions>): Promise<void> {
    this.redisUrl = this.name === 'Redis' ? await freshRedis() : NO_REDIS
    this.databaseUrl = await freshDatabase()
    this.hf = await this.another({
      ...options,
      telemetry: {
        count: (name, labels, by = 1) => {
          if (name === 'holdfast_decisions_total') this.#decisions += by
          if (name === 'holdfast_recoveries_total' && labels?.what === 'fallback') this.#fallbacks += by
        },
      },
    })
  }

  /** One more process's worth of engine on the same servers. Whoever asks closes it. */
  another(options: Partial<ConnectOptions> = {}): Promise<Holdfast> {
    return Holdfast.connect({
      redis: this.redisUrl,
      postgres: this.databaseUrl,
      timeout: 20_000,
      ...options,
      redisOptions: { ...PATIENT, ...options.redisOptions },
      engine: { ...QUIET, ...options.engine },
    })
  }

  /** A wallet of its own, with that much in it. */
  async wallet(available = 0, options: Partial<OpenOptions> = {}, hf = this.hf): Promise<Wallet> {
    this.#wallets += 1
    const wallet = hf.wallet(`wallet-${this.#wallets}`)
    await wallet.open({ currency: 'usd', ...options })
    if (available > 0) await wallet.credit(available, { key: this.key() })
    return wallet
  }

  /** A key that nobody used before. */
  key(): string {
    this.#keys += 1
    return `key-${this.#keys}`
  }

  async close(): Promise<void> {
    await this.hf.close()
    const way = { decisions: this.#decisions > 0, fallbacks: this.#fallbacks > 0 }
    expect(way).toEqual({ decisions: this.name === 'Redis', fallbacks: this.name === 'Postgres' })
  }
}

export function onBothPaths(body: (path: Path) => void, options: Partial<ConnectOptions> = {}): void {
  for (const name of ['Redis', 'Postgres'] as const) {
    describe(`on the ${name} path`, () => {
      const path = new Path(name)
      beforeAll(() => path.connect(options))
      afterAll(() => path.close())
      body(path)
    })
  }
}

/** The refusal that a call must end in. */
export async function refusal(call: Promise<unknown>): Promise<HoldfastError> {
  const error = await call.then(
    (answer) => expect.fail(`expected a refusal, got ${JSON.stringify(answer)}`),
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(HoldfastError)
  return error as HoldfastError
}

export async function until(isSo: () => boolean | Promise<boolean>, timeoutMs = 20_000): Promise<void> {
  const deadline = Date.now() + timeoutMs
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error(`Still not so after ${timeoutMs} ms: ${isSo}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/**
 * Waits out a ttl: a moment that no event marks. A little more, because a process takes a server's clock to be as far as its last
 * answer told, never further: behind by as much as that answer was under way.
 */
export const passes = (at: number): Promise<void> => until(() => Date.now() > at + 1_000)
