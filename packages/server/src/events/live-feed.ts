import type { FeedHead, FeedRow, PostgresFeed } from 'holdfast'
import type { ServerTelemetry } from '../metrics/index.js'
import { behindRow, isWholeRow, type Position } from './position.js'
import { type Subscription, wantsSales } from './subscription.js'

export interface LiveFeedSettings {
  readonly telemetry: ServerTelemetry
  /** For how long the feed is kept, and noted after somebody last read it. */
  readonly keepMs: number
  /** How long before it runs out a hold is told to do so. 0: it is not. */
  readonly expiringMs: number
  readonly pollMs?: number
}

export interface Page {
  readonly rows: readonly FeedRow[]
  /** Behind this there is nothing else up to its end. */
  readonly end: number
}

/** One who waits for news of a subscription. */
export interface Listener {
  readonly subscription: Subscription
  /** Called with the position before the first row that concerns it. */
  wake(before: number): void
  /** The history that it was in is no more. */
  end(): void
}

const POLL_MS = 100
const POLL_FAILED_MAX_MS = 2_000
/** Rows and entries that are kept in memory for all who listen: who is slower than that reads from Postgres. */
const KEPT_ITEMS = 5_000
const PRUNE_MS = 60_000
const EXPIRING_SHARE = 20
const EXPIRING_MIN_MS = 500

/** The one reader of the feed in this process. It looks only while somebody wants to know. */
export class LiveFeed {
  readonly #feed: PostgresFeed
  readonly #settings: LiveFeedSettings
  readonly #listeners = new Map<string, Set<Listener>>()
  readonly #followers = new Set<() => void>()
  /** From where on the rows of a tenant are all in memory, and those with what happened in its sales. */
  readonly #keptFrom = new Map<string, number>()
  readonly #salesFrom = new Map<string, number>()
  #rows: FeedRow[] = []
  #kept = 0
  /** Where we were last, with its mark; and how far those who listen were told of since. */
  #head: FeedHead = { position: 0, mark: 0 }
  #position = 0
  #opening: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #working: Promise<void> | undefined
  #users = 0
  #opened = false
  #failures = 0
  #closed = false
  #prunedAt = 0
  #expiringAt = 0

  constructor(feed: PostgresFeed, settings: LiveFeedSettings) {
    this.#feed = feed
    this.#settings = settings
  }

  /** How far everybody was told. */
  get position(): number {
    return this.#position
  }

  /** A place that can be come back to, not later than `position`. */
  get head(): FeedHead {
    return this.#head
  }

  /** Keeps looking until the returned function is called. Resolves when whatever happens from now on will be seen. */
  async use(): Promise<() => void> {
    this.#users += 1
    let released = false
    const release = (): void => {
      if (released) return
      released = true
      this.#users -= 1
      // Whoever comes next begins where things are then, not where they were now.
      if (this.#users === 0) this.#opening = undefined
    }
    try {
      this.#opening ??= this.#open().catch((error: Error) => {
        this.#opening = undefined
        throw error
      })
      await this.#opening
      this.#schedule(0)
      return release
    } catch (error) {
      release()
      throw error
    }
  }

  async #open(): Promise<void> {
    const { keepMs } = this.#settings
    this.#opened = false
    clearTimeout(this.#timer)
    await this.#working
    await this.#feed.start(keepMs)
    this.#begin(await this.#feed.relay(keepMs))
    this.#opened = true
  }

  /** Where one begins who has seen nothing yet: behind all that has a position now. */
  async now(): Promise<Position> {
    return behindRow(await this.#feed.relay(this.#settings.keepMs))
  }

  /** Whether one who was there can go on from there. */
  async check({ position, mark }: Position): Promise<boolean> {
    return (await this.#feed.markAt(position)).mark === mark
  }

  /** Told whenever the head has moved. */
  follow(moved: () => void): () => void {
    this.#followers.add(moved)
    return () => this.#followers.delete(moved)
  }

  listen(listener: Listener): () => void {
    const { tenant } = listener.subscription
    if (wantsSales(listener.subscription) && !this.#salesFrom.has(tenant)) this.#salesFrom.set(tenant, this.#position)
    let of = this.#listeners.get(tenant)
    if (!of) {
      of = new Set()
      this.#listeners.set(tenant, of)
      this.#keptFrom.set(tenant, this.#position)
    }
    of.add(listener)
    return () => {
      of.delete(listener)
      if (![...of].some(({ subscription }) => wantsSales(subscription))) this.#salesFrom.delete(tenant)
      if (of.size > 0 || this.#listeners.get(tenant) !== of) return
      this.#listeners.delete(tenant)
      this.#keptFrom.delete(tenant)
    }
  }

  /** What comes after a position, from memory where it is still there. */
  async read(subscription: Subscription, from: Position): Promise<Page> {
    const { tenant, wallet, sale } = subscription
    const withSales = wantsSales(subscription)
    const after = isWholeRow(from) ? from.position : from.position - 1
    const end = this.#position
    if (after >= end) return { rows: [], end }
    const keptFrom = (withSales ? this.#salesFrom : this.#keptFrom).get(tenant) ?? Number.POSITIVE_INFINITY
    if (after >= keptFrom) {
      return { rows: this.#keptAfter(after).filter((row) => row.tenant === tenant), end }
    }
    const salesOf = withSales ? [tenant] : []
    return this.#feed.read({ tenants: [tenant], after, upTo: end, salesOf, wallet, sale })
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#endAll()
    await this.#working
  }

  #schedule(ms: number): void {
    if (this.#closed || this.#working || this.#users === 0 || !this.#opened) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#working = this.#look().finally(() => {
        this.#working = undefined
        this.#schedule(this.#pauseMs())
      })
    }, ms)
    this.#timer.unref()
  }

  #pauseMs(): number {
    const { pollMs = POLL_MS } = this.#settings
    return this.#failures === 0 ? pollMs : Math.min(POLL_FAILED_MAX_MS, pollMs * 2 ** this.#failures)
  }

  async #look(): Promise<void> {
    const { telemetry, keepMs } = this.#settings
    try {
      await this.#noteExpiring()
      for (let more = true; more && !this.#closed; ) {
        const relayed = await this.#feed.relay(keepMs)
        more = relayed.more
        if (!relayed.feeding) await this.#feed.start(keepMs)
        await this.#advance(relayed)
      }
      await this.#prune()
      this.#failures = 0
    } catch (error) {
      if (this.#failures === 0) telemetry.log?.('warn', 'events_not_read', { reason: String(error) })
      this.#failures += 1
      telemetry.count('events_read_failures_total')
    }
  }

  async #advance(to: FeedHead): Promise<void> {
    if (to.position === this.#head.position && to.mark === this.#head.mark) return
    if (!(await this.check(behindRow(this.#head)))) {
      // Postgres was put back, or nobody had read for so long that the feed began anew: those who listen have to come again.
      this.#settings.telemetry.log?.('warn', 'events_history_changed', { from: this.#head.position, to: to.position })
      this.#endAll()
      this.#begin(to)
      return
    }
    while (this.#position < to.position) await this.#readOn(to.position)
    this.#head = to
    for (const moved of this.#followers) moved()
  }

  async #readOn(upTo: number): Promise<void> {
    const before = this.#position
    const tenants = [...this.#listeners.keys()]
    const salesOf = [...this.#salesFrom.keys()]
    const asked = { tenants, salesOf, after: before, upTo }
    const page = tenants.length > 0 ? await this.#feed.read(asked) : { rows: [], end: upTo }
    this.#position = page.end
    this.#keep(page.rows)
    for (const row of page.rows) this.#dispatch(row)
    // Who came while this was read is not in it, and has to look for itself.
    for (const [tenant, listeners] of this.#listeners) {
      const missed = !tenants.includes(tenant)
      const missedSales = this.#salesFrom.has(tenant) && !salesOf.includes(tenant)
      if (missed) this.#keptFrom.set(tenant, page.end)
      if (missedSales) this.#salesFrom.set(tenant, page.end)
      for (const listener of listeners) {
        if (missed || (missedSales && wantsSales(listener.subscription))) listener.wake(before)
      }
    }
  }

  #dispatch(row: FeedRow): void {
    const listeners = this.#listeners.get(row.tenant)
    const [first] = row.items
    if (!listeners || !first) return
    const wallets = new Set(row.items.map(({ wallet }) => wallet))
    const sales = new Set(row.items.map(({ sale }) => sale?.id))
    for (const listener of listeners) {
      const { wallet, sale } = listener.subscription
      if ((wallet === null || wallets.has(wallet)) && (sale === null || sales.has(sale))) {
        listener.wake(row.position - 1)
      }
    }
    const lagMs = Date.now() - (first.entry?.at ?? row.at)
    this.#settings.telemetry.observe('events_lag_seconds', Math.max(0, lagMs) / 1_000)
  }

  #keep(rows: readonly FeedRow[]): void {
    for (const row of rows) {
      this.#rows.push(row)
      this.#kept += row.items.length
    }
    let gone = 0
    for (; this.#kept > KEPT_ITEMS; gone += 1) this.#kept -= (this.#rows[gone] as FeedRow).items.length
    if (gone === 0) return
    const last = (this.#rows[gone - 1] as FeedRow).position
    this.#rows = this.#rows.slice(gone)
    for (const kept of [this.#keptFrom, this.#salesFrom]) {
      for (const [tenant, from] of kept) if (from < last) kept.set(tenant, last)
    }
  }

  #keptAfter(position: number): FeedRow[] {
    let low = 0
    let high = this.#rows.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#rows[middle] as FeedRow).position > position) high = middle
      else low = middle + 1
    }
    return this.#rows.slice(low)
  }

  #begin(head: FeedHead): void {
    this.#head = { position: head.position, mark: head.mark }
    this.#position = head.position
    this.#rows = []
    this.#kept = 0
  }

  #endAll(): void {
    for (const listeners of [...this.#listeners.values()]) for (const listener of [...listeners]) listener.end()
  }

  async #noteExpiring(): Promise<void> {
    const { expiringMs } = this.#settings
    const now = performance.now()
    if (expiringMs === 0 || now < this.#expiringAt) return
    const more = await this.#feed.noteExpiring(expiringMs)
    if (!more) this.#expiringAt = now + Math.max(EXPIRING_MIN_MS, expiringMs / EXPIRING_SHARE)
  }

  async #prune(): Promise<void> {
    const now = performance.now()
    if (now - this.#prunedAt < PRUNE_MS) return
    this.#prunedAt = now
    await this.#feed.prune(this.#settings.keepMs)
  }
}
