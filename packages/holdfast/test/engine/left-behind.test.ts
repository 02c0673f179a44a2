import { afterAll, beforeAll, expect, it } from 'vitest'
import { holdOf } from '../../src/engine/transfer-commands.js'
import { type Intent, PostgresIntents } from '../../src/journal/index.js'
import { command } from '../../src/machine/index.js'
import { Keys } from '../../src/redis/index.js'
import { until } from '../api/support/paths.js'
import { Engines, openWallet, ownServers } from './support/engines.js'

/** As many as would take a minute, if each few of them had to lie there for so long before the next are looked at. */
const LEFT = 480
const PACE = { claimMax: 8, sweepEveryMs: 20, transferHoldWithinMs: 250, transferGraceMs: 1_000 }

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 5), shards: 4 })
const engines = new Engines(keys)
let servers: Awaited<ReturnType<typeof ownServers>>
let intents: PostgresIntents

beforeAll(async () => {
  servers = await ownServers()
  intents = new PostgresIntents(servers.postgres)
  for (const id of ['from', 'to']) await openWallet(servers.journal, keys.of(id), id)
})
afterAll(() => engines.close())

const openIntents = async (): Promise<number> =>
  (await servers.postgres.transaction((tx) => tx.execute('test', 'SELECT FROM transfers'))).length

function startEngine(count: (what: string) => void = () => {}) {
  const { redisUrl, postgres } = servers
  const telemetry = { count: (_: string, labels?: Record<string, string>) => count(`${labels?.what}`) }
  return engines.start({ redisUrl, postgres, telemetry, options: PACE }).engine
}

/** Written down by processes that died right after it, or after the hold. */
async function leave(held: boolean): Promise<void> {
  const rest = { tenant: 'test', amount: 1, fee: 0, counter: 'revenue', metadata: '' }
  const left = Array.from(
    { length: LEFT },
    (_, n): Intent => ({ ...rest, source: keys.ref('from'), target: keys.ref('to'), key: `${held}-${n}` }),
  )
  await intents.begin(left)
  if (!held) return
  const engine = startEngine()
  await engine.submit(keys.of('from'), command({ kind: 'credit', key: 'in', amount: LEFT }), { memory: false })
  await Promise.all(left.map((intent) => engine.submit(keys.of('from'), holdOf(intent), { memory: false })))
}

it.each([
  ['transfers that were only written down', false],
  ['transfers that hold money', true],
])('brings all %s to an end, however many they are, once each', async (_, held) => {
  await leave(held)
  const endings: string[] = []
  for (let n = 0; n < 2; n += 1) startEngine((what) => endings.push(what)).start()
  await until(async () => (await openIntents()) === 0)
  await engines.close()
  const ended = endings.filter((what) => what === (held ? 'transfer_finished' : 'transfer_dropped'))
  // On a machine that stands still, what one is at work on may pass for left again.
  expect(ended.length).toBeGreaterThanOrEqual(LEFT)
  const [row] = await servers.journal.read([keys.ref('to')])
  expect(row).toMatchObject({ available: held ? LEFT : 0 })
})
