import { Holdfast } from 'holdfast'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { freshDatabase, freshRedis } from '../../../test/servers.js'
import { type HoldfastProcess, holdfast, run } from './support/holdfast.js'
import { type Acknowledged, Load } from './support/load.js'

const CALLERS = 16
const FUNDS = 1_000_000

let env: { REDIS_URL: string; DATABASE_URL: string }
let apiKey: string
let hf: Holdfast

beforeAll(async () => {
  env = { REDIS_URL: await freshRedis(), DATABASE_URL: await freshDatabase() }
  apiKey = JSON.parse((await run(['keys', 'create', '--json'], { env })).stdout).key
  hf = await Holdfast.connect({ redis: env.REDIS_URL, postgres: env.DATABASE_URL })
})
afterAll(() => hf?.close())

async function openWallets(name: string): Promise<string[]> {
  const ids = Array.from({ length: CALLERS }, (_, index) => `${name}-${index}`)
  await Promise.all(
    ids.map(async (id) => {
      await hf.wallet(id).open({ currency: 'usd' })
      await hf.wallet(id).credit(FUNDS, { key: 'topup' })
    }),
  )
  return ids
}

const startTwo = async (
  ...flags: string[]
): Promise<{ servers: [HoldfastProcess, HoldfastProcess]; urls: string[] }> => {
  const args = ['serve', '--port', '0', '--log-level', 'error', '--key-rate', '1000000', ...flags]
  const servers: [HoldfastProcess, HoldfastProcess] = [await holdfast(args, { env }), await holdfast(args, { env })]
  return { servers, urls: [await servers[0].ready(), await servers[1].ready()] }
}

/** So many more yeses. */
const untilAcknowledged = (load: Load, more: number) => {
  const enough = load.acknowledged.length + more
  return vi.waitFor(() => expect(load.acknowledged.length).toBeGreaterThanOrEqual(enough), 60_000)
}

interface Journal {
  readonly entries: ReadonlyMap<string, { seq: number; hash: string }>
  readonly repeatedKeys: readonly string[]
}

async function journalOf(wallet: string): Promise<Journal> {
  const entries = new Map<string, { seq: number; hash: string }>()
  const repeatedKeys: string[] = []
  for (let after = 0; ; ) {
    const page = await hf.wallet(wallet).entries({ after, limit: 1_000 })
    for (const { key, seq, hash } of page) {
      if (entries.has(key)) repeatedKeys.push(key)
      entries.set(key, { seq, hash })
    }
    if (page.length === 0) return { entries, repeatedKeys }
    after = page.at(-1)?.seq ?? 0
  }
}

/** Every yes is in the journal as it was said, and no key is there twice. */
async function expectKept(acknowledged: readonly Acknowledged[], wallets: readonly string[]): Promise<void> {
  const journals = new Map<string, Journal>()
  for (const wallet of wallets) journals.set(wallet, await journalOf(wallet))
  const lost = acknowledged.filter(({ wallet, key, seq, hash }) => {
    const entry = journals.get(wallet)?.entries.get(key)
    return entry?.seq !== seq || entry.hash !== hash
  })
  expect(lost).toEqual([])
  expect([...journals.values()].flatMap(({ repeatedKeys }) => repeatedKeys)).toEqual([])
  for (const wallet of wallets) {
    const ended = [...(journals.get(wallet) as Journal).entries.keys()].filter((key) => key.endsWith('-end'))
    // Each round costs 1; what was only reserved when it ended is still there.
    const state = await hf.wallet(wallet).get()
    expect((state?.available ?? 0) + (state?.reserved ?? 0)).toBe(FUNDS - ended.length)
  }
}

describe('two servers on the same Redis and Postgres, under load', () => {
  it('lose nothing that was acknowledged when one of them is killed', async () => {
    const wallets = await openWallets('killed')
    const { servers, urls } = await startTwo()
    const load = new Load({ urls, apiKey, wallets, retries: true })
    const running = load.run()
    await untilAcknowledged(load, 300)
    servers[0].signal('SIGKILL')
    expect(await servers[0].ended).toMatchObject({ signal: 'SIGKILL' })
    await untilAcknowledged(load, 300)
    load.stop()
    await running
    expect(load.failures).toEqual([])
    expect(load.repeated).toBeGreaterThan(0)
    await expectKept(load.acknowledged, wallets)
    expect(await servers[1].stop()).toMatchObject({ code: 0 })
  }, 120_000)

  it('fail no request when one of them is stopped: nobody has to try again', async () => {
    const wallets = await openWallets('stopped')
    // Much longer than between two looks of the balancer, on a machine that is busy with other things as well.
    const { servers, urls } = await startTwo('--drain-ms', '8000')
    const load = new Load({ urls, apiKey, wallets, retries: false })
    const running = load.run()
    await untilAcknowledged(load, 300)
    servers[0].signal('SIGTERM')
    expect(await servers[0].ended).toMatchObject({ code: 0, stderr: '' })
    await untilAcknowledged(load, 300)
    load.stop()
    await running
    expect([load.failures, load.repeated]).toEqual([[], 0])
    await expectKept(load.acknowledged, wallets)
    expect(await servers[1].stop()).toMatchObject({ code: 0 })
  }, 120_000)
})
