import { randomBytes } from 'node:crypto'
import { RedisStore } from 'holdfast/stripe402'
import { Redis } from 'ioredis'
import { AMOUNT, FUNDS } from './plan.js'

export type ContenderName = 'published' | 'store' | 'keyed'

export const TITLES: Readonly<Record<ContenderName, string>> = {
  published: 'as published: the script text with each call',
  store: '`RedisStore`',
  keyed: '`RedisStore`, each with a key',
}

/** Read, compare, set, as its documentation describes it; the text of the script goes with every call. */
const PUBLISHED = `
local balance = tonumber(redis.call('HGET', KEYS[1], 'balance') or '0')
local amount = tonumber(ARGV[1])
if balance >= amount then
  local after = balance - amount
  redis.call('HSET', KEYS[1], 'balance', tostring(after), 'updatedAt', ARGV[2])
  return after
end
return -1
`

/** Clients with money, and one way to take it from them. */
export class Contender {
  readonly #redis: Redis
  readonly #store: RedisStore
  readonly #ids: readonly string[]
  readonly #run: string
  readonly #deduct: (clientId: string) => Promise<number | null>
  #keys = 0
  /** Deductions that were answered with a balance. */
  done = 0

  private constructor(name: ContenderName, url: string, clients: number) {
    this.#redis = new Redis(url)
    this.#store = new RedisStore(this.#redis)
    this.#ids = Array.from({ length: clients }, () => randomBytes(32).toString('hex'))
    this.#run = randomBytes(4).toString('hex')
    this.#deduct = {
      published: (id: string) => this.#published(id),
      store: (id: string) => this.#store.deductBalance(id, AMOUNT),
      keyed: (id: string) => this.#store.deductBalance(id, AMOUNT, { key: `${this.#run}-${this.#keys++}` }),
    }[name]
  }

  static async open(name: ContenderName, url: string, clients: number): Promise<Contender> {
    const contender = new Contender(name, url, clients)
    const at = new Date()
    const record = { stripeCustomerId: 'cus_bench', balance: FUNDS, currency: 'usd', createdAt: at, updatedAt: at }
    for (const clientId of contender.#ids) await contender.#store.createClient({ clientId, ...record })
    return contender
  }

  /** From any of the clients, or always from the same. */
  async deduct(isHot: boolean): Promise<void> {
    const id = this.#ids[isHot ? 0 : Math.floor(Math.random() * this.#ids.length)] as string
    if ((await this.#deduct(id)) === null) throw new Error('A deduction was refused, and there was enough')
    this.done += 1
  }

  /** What the clients lack by now, in deductions. */
  async missing(): Promise<number> {
    let balance = 0n
    for await (const client of this.#store.listClients()) balance += BigInt(client.balance)
    return Number(BigInt(FUNDS) * BigInt(this.#ids.length) - balance) / AMOUNT
  }

  close(): void {
    this.#redis.disconnect()
  }

  async #published(clientId: string): Promise<number | null> {
    const at = new Date().toISOString()
    const after = await this.#redis.eval(PUBLISHED, 1, `stripe402:client:${clientId}`, String(AMOUNT), at)
    return after === -1 ? null : (after as number)
  }
}
