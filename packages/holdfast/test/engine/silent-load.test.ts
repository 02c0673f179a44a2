import { afterEach, beforeEach, expect, it } from 'vitest'
import { PostgresJournal, type Raise, type WalletRow } from '../../src/journal/index.js'
import { command } from '../../src/machine/index.js'
import { Keys } from '../../src/redis/index.js'
import { until } from '../api/support/paths.js'
import { Engines, openWallet, ownServers } from './support/engines.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 5), shards: 4 })
const { redisUrl, postgres, journal: plain } = await ownServers()

/** Nothing is heard of raises, and of reads only if they answer, until it is let go. */
class SilentJournal extends PostgresJournal {
  readsAnswer = false
  reads = 0
  go = (): void => {}
  readonly #gone = new Promise<void>((resolve) => {
    this.go = resolve
  })

  override async raise(raises: readonly Raise[]) {
    await this.#gone
    return super.raise(raises)
  }

  override async read(refs: readonly string[]): Promise<WalletRow[]> {
    if (!this.readsAnswer) await this.#gone
    const rows = await super.read(refs)
    this.reads += 1
    return rows
  }
}

const engines = new Engines(keys)
let journal: SilentJournal
let circuit: string[]

beforeEach(() => {
  journal = new SilentJournal(postgres)
  circuit = []
})
afterEach(async () => {
  journal.go()
  await engines.close()
})

function startEngine(postgresPatienceMs: number) {
  const telemetry = {
    count: (name: string, labels?: Record<string, string>) => {
      if (name === 'holdfast_circuit_changes_total' && labels?.dependency === 'postgres') circuit.push(`${labels.to}`)
    },
  }
  const options = { postgresPatienceMs, sweepEveryMs: 600_000, timeoutMs: 60_000 }
  return engines.start({ redisUrl, postgres, journal, telemetry, options }).engine
}

it('takes Postgres for away when it hangs, though it is only asked for a wallet that has to be loaded', async () => {
  await openWallet(plain, keys.of('cold'), 'cold')
  const engine = startEngine(400)
  const credit = engine.submit(keys.of('cold'), command({ kind: 'credit', key: 'in', amount: 1 }), { memory: false })
  credit.catch(() => {})
  await until(() => circuit.includes('open'))
})

it('does not, when it is only the wallet that takes long', async () => {
  await openWallet(plain, keys.of('slow'), 'slow')
  journal.readsAnswer = true
  const engine = startEngine(4_000)
  const credit = engine.submit(keys.of('slow'), command({ kind: 'credit', key: 'in', amount: 1 }), { memory: false })
  await until(() => journal.reads > 0)
  expect(circuit).toEqual([])
  journal.go()
  expect(await credit).toMatchObject({ entry: { seq: 1 } })
})
