/** A sale of which half is sold, and who asks for that half. */
import { randomUUID } from 'node:crypto'
import { type EarlyRejectOptions, Holdfast, HoldfastError } from 'holdfast'
import { BenchError } from '../harness/error.js'

export const WAYS = ['none', 'bitmap', 'bloom'] as const
export type Way = (typeof WAYS)[number]

const SALE = 'sale'
/** As many as a checkout may have. */
const LINES = 100
const SELLERS = 8
/** Items that are asked for: a crowd wants the same ones, and a process remembers so many ids. */
const WANTED_MAX = 10_000
const PATIENCE_MS = 600_000

export interface Urls {
  readonly redisUrl: string
  readonly databaseUrl: string
}

export interface Counted {
  readonly refusals: number
  readonly seconds: number
}

const idOf = (item: number): string => `item-${item}`

/** Items have numbers from 1: those with even ones are sold. */
export async function sellHalf({ redisUrl, databaseUrl }: Urls, items: number): Promise<void> {
  const hf = await connect({ redisUrl, databaseUrl }, false)
  const now = Date.now()
  await hf.sale(SALE).open({
    items: Array.from({ length: items }, (_, n) => ({ id: idOf(n + 1) })),
    perUser: LINES,
    startsAt: now - 1_000,
    endsAt: now + 24 * 3_600_000,
    timeout: PATIENCE_MS,
  })
  let next = 1
  const seller = async (): Promise<void> => {
    while (next <= items / 2) {
      const from = next
      next += LINES
      const count = Math.min(LINES, items / 2 - from + 1)
      const lines = Array.from({ length: count }, (_, n) => ({ id: idOf(2 * (from + n)) }))
      const { code } = await hf.sale(SALE).checkout({ user: `seller-${from}`, items: lines, key: `${from}` })
      await hf.sale(SALE).purchase(code)
    }
  }
  await Promise.all(Array.from({ length: SELLERS }, seller))
  await hf.close()
}

export class Shop {
  readonly way: Way
  readonly #hf: Holdfast
  readonly #wanted: number

  private constructor(way: Way, hf: Holdfast, items: number) {
    this.way = way
    this.#hf = hf
    this.#wanted = Math.min(WANTED_MAX, items / 2)
  }

  static async open(way: Way, urls: Urls, items: number): Promise<Shop> {
    const counts = { told: 0 }
    const telemetry = {
      count: (name: string, labels?: Record<string, string>, by = 1) => {
        if (name === 'holdfast_sale_early_rejects_total' && labels?.outcome === 'told') counts.told += by
      },
    }
    const hf = await connect(urls, way === 'none' ? false : { by: way }, telemetry)
    const shop = new Shop(way, hf, items)
    await shop.#meetItems()
    // Until what is sold is known, the engine is asked.
    while (way !== 'none' && counts.told === 0) {
      await new Promise((resolve) => setTimeout(resolve, 50))
      await shop.#ask()
    }
    return shop
  }

  async refuse(callers: number, forMs: number): Promise<Counted> {
    const from = performance.now()
    let refusals = 0
    const caller = async (): Promise<void> => {
      for (let asked = 0; performance.now() - from < forMs; asked += 1) {
        await this.#ask()
        refusals += 1
        // What is answered at once leaves nobody else a turn.
        if (asked % 64 === 63) await new Promise((resolve) => setImmediate(resolve))
      }
    }
    await Promise.all(Array.from({ length: callers }, caller))
    return { refusals, seconds: (performance.now() - from) / 1_000 }
  }

  async close(): Promise<void> {
    await this.#hf.close()
  }

  /** A process reads an item of Postgres when it is first asked for: that is not what is measured. */
  async #meetItems(): Promise<void> {
    for (let from = 1; from <= this.#wanted; from += LINES) {
      const count = Math.min(LINES, this.#wanted - from + 1)
      await this.#ask(Array.from({ length: count }, (_, n) => 2 * (from + n)))
    }
  }

  async #ask(items = [2 * (1 + Math.floor(Math.random() * this.#wanted))]): Promise<void> {
    const name = nextName()
    try {
      await this.#hf.sale(SALE).checkout({ user: name, items: items.map((item) => ({ id: idOf(item) })), key: name })
    } catch (error) {
      if (HoldfastError.is(error, 'sold_out')) return
      throw error
    }
    throw new BenchError(`One of the items ${items} was sold twice`)
  }
}

const RUN = randomUUID()
let names = 0
function nextName(): string {
  names += 1
  return `${RUN}-${names}`
}

function connect(
  { redisUrl, databaseUrl }: Urls,
  earlyReject: EarlyRejectOptions | false,
  telemetry = {},
): Promise<Holdfast> {
  const postgresOptions = { statementTimeoutMs: PATIENCE_MS, connectTimeoutMs: 60_000 }
  return Holdfast.connect({
    redis: redisUrl,
    postgres: databaseUrl,
    postgresOptions,
    audit: false,
    timeout: 60_000,
    earlyReject,
    telemetry,
  })
}
