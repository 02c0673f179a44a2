/** One trial: workers under load on real servers, whatever is done to them meanwhile, and what is found when all has healed. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ConnectOptions, Holdfast, type WalletState } from 'holdfast'
import { Chance } from '../sim/world.js'
import { check, type Summary, summarize } from './checker.js'
import { Fleet, unanswered, type Worker } from './fleet.js'
import type { Seen } from './history.js'
import { findUnrest, type Remembered, readJournal } from './journal.js'
import type { Place, Way } from './places.js'

export interface TrialOptions {
  readonly seed: number
  readonly workers?: number
  readonly callersPerWorker?: number
  readonly wallets?: number
  readonly connect?: Partial<ConnectOptions>
  /** How long callers of a dead worker wait before they ask elsewhere. */
  readonly retryElsewhereAfterMs?: number
}

export interface Verdict {
  /** Nothing, when every promise was kept. */
  readonly problems: readonly string[]
  readonly summary: Summary
  /** What the engines of the workers had to set right. */
  readonly counts: Readonly<Record<string, number>>
  readonly entries: number
  readonly history: readonly Seen[]
  readonly journal: Remembered
}

const FUNDS = 500
const YESES_WITHIN_MS = 60_000
const FINISH_WITHIN_MS = 60_000
const REST_WITHIN_MS = 120_000
/** What nobody touches is looked after sooner than in production, so that a trial need not wait for it. */
const ENGINE = { sweepEveryMs: 300, dueGraceMs: 500, transferHoldWithinMs: 1_500, transferGraceMs: 3_000 }
/** For who opens all wallets at once, and reads them at the end: a thousand of them wait for each other. */
const PATIENT = { timeout: 60_000, postgresOptions: { connectTimeoutMs: 60_000 } }

export class Trial {
  readonly place: Place
  readonly chance: Chance
  readonly databaseUrl: string
  readonly #options: TrialOptions
  readonly #folder: string
  readonly #wallets: readonly string[]
  readonly #ways = new Map<Worker, Way>()
  readonly #allWays: Way[] = []
  #fleet!: Fleet
  #keeper!: Holdfast

  private constructor(place: Place, databaseUrl: string, options: TrialOptions) {
    this.place = place
    this.databaseUrl = databaseUrl
    this.chance = new Chance(options.seed)
    this.#options = options
    this.#folder = mkdtempSync(join(tmpdir(), 'holdfast-chaos-'))
    this.#wallets = Array.from({ length: options.wallets ?? 12 }, (_, number) => `wallet-${number}`)
  }

  static async begin(place: Place, options: TrialOptions): Promise<Trial> {
    const trial = new Trial(place, await place.newDatabase(), options)
    try {
      await trial.#begin()
      return trial
    } catch (error) {
      await trial.stop()
      throw error
    }
  }

  async #begin(): Promise<void> {
    const { seed, workers = 2, callersPerWorker = 8 } = this.#options
    const place = { redis: this.place.direct, postgres: this.databaseUrl }
    this.#keeper = await Holdfast.connect({ ...place, ...PATIENT, engine: ENGINE })
    await Promise.all(
      this.#wallets.map(async (id) => {
        await this.#keeper.wallet(id).open({ currency: 'usd' })
        await this.#keeper.wallet(id).credit(FUNDS, { key: 'funds' })
      }),
    )
    this.#fleet = await Fleet.prepare({
      callers: callersPerWorker,
      wallets: this.#wallets,
      seed,
      folder: this.#folder,
    })
    await Promise.all(Array.from({ length: workers }, () => this.startWorker()))
  }

  get workers(): Worker[] {
    return this.#fleet.running
  }

  /** One that is awake. */
  anyWorker(): Worker {
    return this.chance.pick(this.workers.filter(({ paused }) => !paused))
  }

  wayOf(worker: Worker): Way {
    return this.#ways.get(worker) as Way
  }

  async startWorker(inheritedFrom?: Worker): Promise<Worker> {
    const way = await this.place.way(this.databaseUrl)
    this.#allWays.push(way)
    const { connect } = this.#options
    const options = {
      redis: way.redis,
      postgres: way.postgres,
      ...connect,
      engine: { ...ENGINE, ...connect?.engine },
    }
    const worker = await this.#fleet.start(options, inheritedFrom ? unanswered(inheritedFrom) : [])
    this.#ways.set(worker, way)
    return worker
  }

  /** `kill -9`, and another in its place, whose callers ask what the dead one did not answer. */
  async replace(worker: Worker): Promise<void> {
    await worker.kill()
    await sleep(this.#options.retryElsewhereAfterMs ?? 2_500)
    await this.startWorker(worker)
  }

  /** Resolves when callers have been told yes `yeses` times more, so that there is something to lose. */
  async underLoad(yeses = 150): Promise<void> {
    const wanted = this.#fleet.yeses + yeses
    const deadline = performance.now() + YESES_WITHIN_MS
    while (this.#fleet.yeses < wanted) {
      if (performance.now() > deadline) throw new Error(`Expected ${wanted} yeses by now, got ${this.#fleet.yeses}`)
      await sleep(20)
    }
  }

  /** What the engines of the workers had to set right so far. */
  get counts(): Readonly<Record<string, number>> {
    return this.#fleet.counts
  }

  /** No more load; callers hear what they wait for; holds run out, transfers are finished; then all is compared. */
  async finish(): Promise<Verdict> {
    await this.#fleet.finish(FINISH_WITHIN_MS)
    const restless = await this.#comeToRest()
    const journal = await readJournal(this.databaseUrl)
    const { seen: history } = this.#fleet
    const entries = journal.wallets.reduce((sum, { entries }) => sum + entries.length, 0)
    return {
      problems: [...restless, ...check(journal, history)],
      summary: summarize(history),
      counts: this.counts,
      entries,
      history,
      journal,
    }
  }

  async #comeToRest(): Promise<string[]> {
    // Whatever a dead process left behind comes to light with the next writer.
    await Promise.all(this.#wallets.map((id) => this.#keeper.wallet(id).credit(1, { key: 'first light' })))
    const deadline = performance.now() + REST_WITHIN_MS
    for (;;) {
      const restless = await findUnrest(this.databaseUrl)
      if (restless.length === 0)
        restless.push(...(await Promise.all(this.#wallets.map((id) => this.#isApart(id)))).flat())
      if (restless.length === 0 || performance.now() > deadline) return restless
      await sleep(100)
    }
  }

  /** Redis and the journal tell the same of a wallet, or what is between them. */
  async #isApart(id: string): Promise<string[]> {
    const wallet = this.#keeper.wallet(id)
    const pending = (await wallet.get({ pending: true })) as WalletState
    const committed = (await wallet.get()) as WalletState
    return pending.head === committed.head ? [] : [`${id}: Redis has seq ${pending.seq}, the journal ${committed.seq}`]
  }

  async stop(): Promise<void> {
    await this.#fleet?.stop()
    await this.#keeper?.close()
    await Promise.all(this.#allWays.map((way) => way.close()))
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
