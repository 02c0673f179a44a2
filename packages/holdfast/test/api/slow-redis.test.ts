import { afterEach, beforeEach, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Holdfast, type Wallet } from '../../src/index.js'
import { type FaultyProxy, startProxy } from '../redis/support/proxy.js'

const LATE_MS = 200
const PER_SECOND = 1_000
const SECONDS = 5
const TIMEOUT_MS = 1_500

let hf: Holdfast
let proxy: FaultyProxy
let wallets: Wallet[]

beforeEach(async () => {
  const url = new URL(await freshRedis())
  proxy = await startProxy(Number(url.port))
  hf = await Holdfast.connect({
    redis: Object.assign(url, { port: String(proxy.port) }).href,
    postgres: await freshDatabase(),
    engine: { sweepEveryMs: 600_000 },
  })
  wallets = Array.from({ length: 20 }, (_, n) => hf.wallet(`w${n}`))
  for (const wallet of wallets) {
    await wallet.open({ currency: 'usd' })
    await wallet.credit(1_000_000, { key: 'in' })
  }
})
afterEach(async () => {
  proxy.behave()
  await hf.close()
  await proxy.close()
})

it('answers callers who come at a pace and leave soon, though Redis answers late', async () => {
  proxy.delay(LATE_MS)
  const calls: Promise<boolean>[] = []
  const begunAt = performance.now()
  while (calls.length < PER_SECOND * SECONDS) {
    const due = Math.min(SECONDS * 1_000, performance.now() - begunAt) * (PER_SECOND / 1_000)
    while (calls.length < due) {
      const n = calls.length
      const debit = (wallets[n % wallets.length] as Wallet).debit(1, { key: `${n}`, timeout: TIMEOUT_MS })
      calls.push(
        debit.then(
          () => true,
          () => false,
        ),
      )
    }
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  const answered = await Promise.all(calls)
  // Two calls of 32 at once would be a third of what is asked, and in the order in which they came nearly all would be too late.
  expect(answered.filter(Boolean).length).toBeGreaterThan(calls.length / 2)
})
