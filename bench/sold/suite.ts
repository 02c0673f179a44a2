/** What it costs to refuse checkouts of what is sold: by asking the engine, by an exact bitmap, by a Bloom filter. */
import { Redis } from 'ioredis'
import { SharedBloomFilter } from '../../packages/holdfast/src/api/sale/filter.js'
import { SoldItems } from '../../packages/holdfast/src/api/sale/sold.js'
import { PostgresJournal, PostgresSales, PostgresSold } from '../../packages/holdfast/src/journal/index.js'
import { Postgres, readSettings } from '../../packages/holdfast/src/postgres/index.js'
import { Primitives } from '../../packages/holdfast/src/primitives/index.js'
import { Keys } from '../../packages/holdfast/src/redis/index.js'
import type { Suite } from '../harness/command.js'
import { treeCpuMs } from '../harness/cpu.js'
import { describeMachine, type Machine } from '../harness/machine.js'
import { Servers } from '../harness/servers.js'
import { type Measured, measured, median, ratio } from '../harness/statistics.js'
import { PLANS, type Plan } from './plan.js'
import { render } from './render.js'
import { Shop, sellHalf, type Urls, WAYS, type Way } from './shop.js'

export interface WayResult {
  readonly way: Way
  readonly refusalsPerSecond: Measured
  /** To asking the engine. */
  readonly ratio: Measured
  readonly cpuUs: { readonly node: number; readonly redis: number; readonly postgres: number }
}

/** What is kept, and what it takes to have it. */
export interface Filters {
  readonly bitmapBytes: number
  readonly codesBytes: number
  /** In each process, and in Redis. */
  readonly bloomBytes: number
  readonly bloomRedisBytes: number
  /** Of items that are not sold, how many it takes for sold. */
  readonly fresh: number
  readonly falseHits: number
  /** The whole journal of the sale read, what came since, and what the Bloom filter takes beyond the first. */
  readonly readMs: number
  readonly againMs: number
  readonly bloomMs: number
}

export interface SaleResult {
  readonly items: number
  readonly ways: readonly WayResult[]
  readonly filters: Filters
}

export interface SoldData {
  readonly suite: 'sold'
  readonly commandLine: string
  readonly machine: Machine
  readonly plan: Plan
  readonly sales: readonly SaleResult[]
}

export const runSold: Suite = async ({ size, commandLine, say, commitDelayMs }) => {
  const plan = PLANS[size]
  say('sold: starting Redis and Postgres')
  const servers = await Servers.start({ commitDelayMs })
  try {
    const sales: SaleResult[] = []
    for (const items of plan.items) {
      const urls = await servers.allot(`sold_${items}`)
      say(`sold: selling half of ${items} items`)
      await sellHalf(urls, items)
      const ways = await play(plan, urls, items, servers, say)
      sales.push({ items, ways, filters: await weigh(urls, items) })
    }
    const data: SoldData = { suite: 'sold', commandLine, machine: describeMachine(), plan, sales }
    return { suite: 'sold', failures: [], markdown: render(data), plots: new Map(), data }
  } finally {
    await servers.stop()
  }
}

interface Sample {
  readonly perSecond: number
  readonly cpuUs: WayResult['cpuUs']
}

/** One after the other, round by round: what disturbs one disturbs all. Who asks shares a process with who answers. */
async function play(
  plan: Plan,
  urls: Urls,
  items: number,
  servers: Servers,
  say: (line: string) => void,
): Promise<WayResult[]> {
  const shops: Shop[] = []
  const samples = new Map<Way, Sample[]>(WAYS.map((way) => [way, []]))
  try {
    for (const way of WAYS) shops.push(await Shop.open(way, urls, items))
    for (let round = 0; round < plan.rounds; round += 1) {
      const line: string[] = []
      for (const shop of round % 2 === 0 ? shops : shops.toReversed()) {
        await shop.refuse(plan.callers, plan.warmUpMs)
        const sample = await measure(shop, plan, servers)
        samples.get(shop.way)?.push(sample)
        line.push(`${shop.way} ${Math.round(sample.perSecond)}`)
      }
      say(`sold: ${items} items, round ${round + 1} of ${plan.rounds}, refusals/s: ${line.sort().join(', ')}`)
    }
  } finally {
    await Promise.all(shops.map((shop) => shop.close()))
  }
  const rates = (way: Way) => measured((samples.get(way) as Sample[]).map(({ perSecond }) => perSecond))
  return WAYS.map((way) => {
    const cpu = (of: keyof WayResult['cpuUs']) => median((samples.get(way) as Sample[]).map(({ cpuUs }) => cpuUs[of]))
    return {
      way,
      refusalsPerSecond: rates(way),
      ratio: ratio(rates(way), rates('none')),
      cpuUs: { node: cpu('node'), redis: cpu('redis'), postgres: cpu('postgres') },
    }
  })
}

async function measure(shop: Shop, { callers, measureMs }: Plan, servers: Servers): Promise<Sample> {
  const read = () => {
    const { user, system } = process.cpuUsage()
    const serverUs = (pid: number) => treeCpuMs(pid) * 1_000
    return { node: user + system, redis: serverUs(servers.redisPid), postgres: serverUs(servers.postgresPid) }
  }
  const before = read()
  const { refusals, seconds } = await shop.refuse(callers, measureMs)
  const after = read()
  const each = (of: keyof typeof before) => (after[of] - before[of]) / refusals
  const cpuUs = { node: each('node'), redis: each('redis'), postgres: each('postgres') }
  return { perSecond: refusals / seconds, cpuUs }
}

async function weigh({ redisUrl, databaseUrl }: Urls, items: number): Promise<Filters> {
  const postgres = new Postgres(databaseUrl)
  const redis = new Redis(redisUrl)
  const { secret } = await readSettings(postgres)
  const keys = new Keys({ tenant: 'default', secret, shards: 64 })
  const terms = (await new PostgresSales(postgres).read('default', 'sale'))?.terms
  if (!terms) throw new Error('The sale is gone')
  const sale = { tenant: 'default', id: 'sale', terms, refs: [keys.ofSale('sale', 0).ref] }
  const sold = new SoldItems({ journal: new PostgresJournal(postgres), sold: new PostgresSold(postgres) }, sale)
  const [, readMs] = await timed(() => sold.refresh())
  const [, againMs] = await timed(() => sold.refresh())
  // Beside the one of the shop: of another owner, so that it is made from nothing.
  const primitives = await Primitives.connect({ redis: redisUrl, secret, owner: 'bench' })
  const size = { capacity: undefined, falsePositives: undefined, everyMs: 10_000 }
  const filter = new SharedBloomFilter(primitives, sold, sale, size)
  const [, bloomMs] = await timed(() => filter.learn([...sold.all()]))
  let falseHits = 0
  for (let item = 1; item <= items; item += 2) if (filter.mightHave(item)) falseHits += 1
  let bloomRedisBytes = 0
  for (const key of await redis.keys('*bench*:bloom:*')) bloomRedisBytes += (await redis.memory('USAGE', key)) ?? 0
  const { bytes } = sold
  const bloomBytes = Math.ceil((-Math.max(100_000, items) * Math.log(0.01)) / Math.LN2 ** 2 / 8)
  filter.close()
  await primitives.close()
  await postgres.close()
  redis.disconnect()
  return {
    bitmapBytes: bytes.bits,
    codesBytes: bytes.codes,
    bloomBytes,
    bloomRedisBytes,
    fresh: items / 2,
    falseHits,
    readMs,
    againMs,
    bloomMs,
  }
}

async function timed<T>(work: () => Promise<T>): Promise<[T, number]> {
  const from = performance.now()
  const result = await work()
  return [result, performance.now() - from]
}
