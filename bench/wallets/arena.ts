/**
 * A contender with its workers and its books: seeded once, then asked for one turn after the other. Between turns it stays
 * connected and idle, as it would in a server: one that is started anew for every turn meets what no running one meets, such as
 * wallets that somebody else seems to be working on.
 */
import { cpus } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Turn } from '../harness/callers.js'
import { type Books, FUNDS, type MemoryUse, type Place, SETTLE_TOTAL, type Tally } from '../harness/contender.js'
import { machineBusyMs, treeCpuMs } from '../harness/cpu.js'
import { BenchError } from '../harness/error.js'
import { Latencies } from '../harness/latency.js'
import type { Servers } from '../harness/servers.js'
import { WorkerProcess } from '../harness/worker-process.js'
import { CONTENDERS, type ContenderName } from './contenders/index.js'

/** What is acknowledged from memory must be in the journal by then. */
const DRAIN_MAX_MS = 30_000
const DRAIN_POLL_MS = 20
const CORES = cpus().length

export interface Sample {
  /** Acknowledged in the whole turn. */
  readonly operations: number
  readonly pairsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Processor time an operation, over the whole turn until everything is where it belongs. */
  readonly cpuUs: { readonly node: number; readonly redis: number; readonly postgres: number }
  readonly logBytes: number
  readonly refusals: number
  readonly settleRefusals: number
  /** After the last acknowledgement, until the store of record had everything. */
  readonly drainMs: number
  /** The part of the machine that worked for somebody else meanwhile, 0 to 1. */
  readonly foreign: number
}

export interface Check {
  readonly contender: ContenderName
  readonly acknowledged: number
  readonly entries: number
  readonly money: 'conserved' | 'not kept' | `${bigint} missing`
}

export class Arena {
  readonly name: ContenderName
  readonly #place: Place
  readonly #servers: Servers
  readonly #books: Books
  readonly #profileFolder: string | undefined
  readonly #workers: WorkerProcess[] = []
  #seeded: Tally = { entries: 0, money: null }
  #tablesSeeded = 0
  #holds = 0
  #settles = 0
  #turns = 0

  private constructor(name: ContenderName, place: Place, servers: Servers, profileFolder: string | undefined) {
    this.name = name
    this.#profileFolder = profileFolder
    this.#place = place
    this.#servers = servers
    this.#books = CONTENDERS[name].books(place)
  }

  static async make(
    name: ContenderName,
    servers: Servers,
    { wallets, profileFolder }: { wallets: number; profileFolder: string | undefined },
  ): Promise<{ arena: Arena; seedMs: number }> {
    const arena = new Arena(name, await servers.allot(name), servers, profileFolder)
    try {
      const [worker] = await arena.#employ(1)
      const from = performance.now()
      await worker?.ask('seed', { wallets })
      const seedMs = performance.now() - from
      arena.#seeded = await arena.#filled(BigInt(wallets) * BigInt(FUNDS))
      arena.#tablesSeeded = (await arena.#books.bytesOnDisk()).tables
      return { arena, seedMs }
    } catch (error) {
      await arena.close()
      throw error
    }
  }

  async turn(processes: number, asked: Omit<Turn, 'name'>): Promise<Sample> {
    const workers = await this.#employ(processes)
    const turn = this.#turns++
    const before = await this.#meter(workers)
    const results = await Promise.all(
      workers.map((worker, index) => {
        const callers = Math.ceil((asked.callers - index) / processes)
        return worker.ask('run', { ...asked, callers, name: `${this.name}-${turn}-${index}` })
      }),
    )
    for (const { holds, settles } of results) {
      this.#holds += holds
      this.#settles += settles
    }
    const drainMs = await this.#drain()
    const after = await this.#meter(workers)

    const latencies = new Latencies()
    for (const { latencyCounts } of results) latencies.add(new Latencies(latencyCounts))
    const operations = results.reduce((sum, { holds, settles }) => sum + holds + settles, 0)
    const perOperation = (key: 'node' | 'redis' | 'postgres') => ((after[key] - before[key]) * 1_000) / operations
    const ours = after.node + after.redis + after.postgres - before.node - before.redis - before.postgres
    return {
      operations,
      pairsPerSecond: results.reduce(
        (sum, { measuredOperations, measuredMs }) => sum + ((measuredOperations / 2) * 1_000) / measuredMs,
        0,
      ),
      p50Ms: latencies.percentile(50),
      p99Ms: latencies.percentile(99),
      cpuUs: { node: perOperation('node'), redis: perOperation('redis'), postgres: perOperation('postgres') },
      logBytes: (after.log - before.log) / operations,
      refusals: results.reduce((sum, { refusals }) => sum + refusals, 0),
      settleRefusals: results.reduce((sum, { settleRefusals }) => sum + settleRefusals, 0),
      drainMs,
      foreign: Math.max(0, (after.busy - before.busy - ours) / ((after.at - before.at) * CORES)),
    }
  }

  /** Against what callers were told: a benchmark that does nothing, or half of it, must not look fast. */
  async check(): Promise<Check> {
    const { entries, money } = await this.#books.tally()
    const expected = (this.#seeded.money ?? 0n) - BigInt(this.#settles) * BigInt(SETTLE_TOTAL)
    return {
      contender: this.name,
      acknowledged: this.#holds + this.#settles,
      entries: entries - this.#seeded.entries,
      money: money === null ? 'not kept' : money === expected ? 'conserved' : `${expected - money} missing`,
    }
  }

  async tableBytesPerOperation(): Promise<number> {
    const { tables } = await this.#books.bytesOnDisk()
    return (tables - this.#tablesSeeded) / (this.#holds + this.#settles)
  }

  async memoryUse(): Promise<MemoryUse | null> {
    const [worker] = await this.#employ(1)
    return (await worker?.ask('memory', undefined)) ?? null
  }

  async close(): Promise<void> {
    await this.#books.close()
    await Promise.all(this.#workers.map((worker) => worker.stop()))
  }

  async #employ(processes: number): Promise<WorkerProcess[]> {
    while (this.#workers.length < processes) {
      const worker = new WorkerProcess(CONTENDERS[this.name].title, this.#profileFolder)
      this.#workers.push(worker)
      await worker.ask('open', { contender: this.name, place: this.#place })
    }
    return this.#workers.slice(0, processes)
  }

  async #filled(expected: bigint): Promise<Tally> {
    const from = performance.now()
    for (;;) {
      const tally = await this.#books.tally()
      if (tally.money === null || tally.money === expected) return tally
      if (performance.now() - from > DRAIN_MAX_MS) {
        throw new BenchError(`${this.name}: expected ${expected} in the wallets, got ${tally.money}`)
      }
      await sleep(DRAIN_POLL_MS)
    }
  }

  async #drain(): Promise<number> {
    const expected = this.#seeded.entries + this.#holds + this.#settles
    const from = performance.now()
    for (;;) {
      const count = await this.#books.count()
      if (count === null) return 0
      const waitedMs = performance.now() - from
      if (count === expected) return waitedMs
      if (count > expected || waitedMs > DRAIN_MAX_MS) {
        throw new BenchError(`${this.name}: callers were told of ${expected} entries, the store has ${count}`)
      }
      await sleep(DRAIN_POLL_MS)
    }
  }

  async #meter(workers: readonly WorkerProcess[]) {
    const { log } = await this.#books.bytesOnDisk()
    const { redis, postgres } = CONTENDERS[this.name].uses
    return {
      at: performance.now(),
      log,
      node: workers.reduce((sum, { pid }) => sum + treeCpuMs(pid), 0),
      redis: redis ? treeCpuMs(this.#servers.redisPid) : 0,
      postgres: postgres ? treeCpuMs(this.#servers.postgresPid) : 0,
      busy: machineBusyMs(),
    }
  }
}
