import { readAgendaName } from '../engine/index.js'
import { type Place, RedisUnavailable, ScriptError } from '../redis/index.js'
import type { HotState } from '../sequencer/index.js'
import type { Difference } from './causes.js'
import { type Comparison, compareHot } from './hot.js'
import type { JournalAudit } from './journal-audit.js'
import type { Run } from './run.js'
import { compareStock } from './stock.js'

/** Looks at a wallet that is loaded anew each time before it is left for the next audit. */
const MOVES_MAX = 5
/** Looks that must agree, the first included, before a difference is called one. */
const LOOKS = 3

interface Suspect {
  readonly place: Place
  readonly differences: readonly Difference[]
}

/**
 * The part of an audit that is about Redis: every wallet on the shard's agenda against its journal. The agenda is a key of its own, and can be
 * lost alone: so those whose journals were read are looked for as well.
 */
export class HotAudit {
  readonly #run: Run
  readonly #journals: Pick<JournalAudit, 'verify'>

  constructor(run: Run, journals: Pick<JournalAudit, 'verify'>) {
    this.#run = run
    this.#journals = journals
  }

  async audit(): Promise<void> {
    const { parts, work, limits } = this.#run
    const agendaKey = parts.agendaOf(work.shard)
    const seen = new Set<string>()
    let from = '0'
    do {
      const part = await this.#orBlind(() => parts.sequencer.scan(agendaKey, from, limits.pageMax))
      if (!part) return
      // The agenda moves while it is read: a name may come twice.
      const fresh = part.names.filter((name) => !seen.has(name))
      for (const name of fresh) seen.add(name)
      const places = fresh.flatMap((name) => {
        const wallet = readAgendaName(name)
        return wallet ? [parts.placeOf(wallet.tenant, wallet.ref)] : []
      })
      if (!(await this.#auditAll(places, (some) => this.#audit(some)))) return
      from = part.next
    } while (from !== '0')
    const others = this.#run.used.map(({ tenant, ref }) => parts.placeOf(tenant, ref))
    await this.#auditAll(
      others.filter(({ agendaName }) => !seen.has(agendaName)),
      (some) => this.#auditUnlisted(some),
    )
  }

  /** `audit` says how many of them are in Redis. False: Redis has gone away. */
  async #auditAll(places: readonly Place[], audit: (some: readonly Place[]) => Promise<number>): Promise<boolean> {
    const { limits, tainted, tally } = this.#run
    const open = places.filter(({ ref }) => !tainted.has(ref))
    for (let at = 0; at < open.length; at += limits.hotMax) {
      const some = open.slice(at, at + limits.hotMax)
      const looked = await this.#run.paced(() => this.#orBlind(() => audit(some)))
      if (looked === null) return false
      tally.hot += looked
    }
    return true
  }

  /** Nobody looks after those that are in Redis: touched, they are entered on the agenda again. */
  async #auditUnlisted(places: readonly Place[]): Promise<number> {
    const { parts, work } = this.#run
    const hot = await parts.sequencer.inspect(places)
    const there = places.filter((_, index) => isThere(hot[index] as HotState))
    if (there.length === 0) return 0
    await this.#audit(there)
    if (work.repair) for (const place of there) await parts.touch(place).catch(() => {})
    return there.length
  }

  /** Redis may be away, or go away: then the rest of the audit counts all the same. Postgres may not. */
  async #orBlind<T>(look: () => Promise<T>): Promise<T | null> {
    try {
      return await look()
    } catch (error) {
      if (!isOfRedis(error)) throw error
      this.#run.tally.blind = true
      this.#run.parts.telemetry.log?.('warn', 'audit_blind', { shard: this.#run.work.shard, reason: String(error) })
      return null
    }
  }

  async #audit(places: readonly Place[]): Promise<number> {
    let suspects = (await this.#compare(places)).filter(({ differences }) => differences.length > 0)
    for (let look = 1; look < LOOKS && suspects.length > 0; look += 1) {
      const late = suspects.some(({ differences }) => differences.every(isLate))
      await this.#run.pause(late ? this.#run.limits.confirmLateAfterMs : this.#run.limits.confirmAfterMs)
      const again = await this.#compare(suspects.map(({ place }) => place))
      suspects = suspects
        .map((suspect, index) => agreed(suspect, again[index]))
        .filter((one) => one.differences.length > 0)
    }
    for (const suspect of suspects) await this.#settle(suspect)
    return places.length
  }

  /** Each against its journal; without differences also where nothing can be said. */
  async #compare(places: readonly Place[]): Promise<Suspect[]> {
    const found = new Map<Place, readonly Difference[]>()
    let open = places
    for (let look = 0; look < MOVES_MAX && open.length > 0; look += 1) {
      const compared = await this.#compareOnce(open)
      for (const [place, differences] of compared) found.set(place, differences)
      open = open.filter((place) => !found.has(place))
    }
    this.#run.tally.unsettled += open.length
    return places.map((place) => ({ place, differences: found.get(place) ?? [] }))
  }

  async #compareOnce(places: readonly Place[]): Promise<Map<Place, readonly Difference[]>> {
    const { parts, limits } = this.#run
    const loadable = new Map((await parts.audits.states(places.map(({ ref }) => ref))).map((one) => [one.ref, one]))
    const hot = await parts.sequencer.inspect(places)
    const at = (index: number): HotState => hot[index] as HotState
    const comparisons = places.map(({ ref }, index) => compareHot(loadable.get(ref), at(index), null, limits))
    const wanting = comparisons.flatMap((one, index) => (one.type === 'wanting' ? [{ index, ...one }] : []))
    if (wanting.length > 0) {
      const most = Math.max(...wanting.map(({ after, upTo }) => upTo - after))
      const stretches = wanting.map(({ index, after, upTo }) => ({ ref: (places[index] as Place).ref, after, upTo }))
      const between = await parts.audits.entries(stretches, Math.min(most, limits.fullEntriesMax))
      for (const [n, { index }] of wanting.entries()) {
        const { ref } = places[index] as Place
        comparisons[index] = compareHot(loadable.get(ref), at(index), between[n] ?? [], limits)
      }
    }
    await this.#judgeMoved(places, hot, comparisons)
    // Of a sale whose numbers are what they should be.
    for (const [index, place] of places.entries()) {
      const state = loadable.get(place.ref)?.state
      if (place.isSale && state && isSame(comparisons[index]))
        comparisons[index] = await compareStock(this.#run, place, state)
    }
    return new Map(
      places.flatMap((place, index) => {
        const comparison = comparisons[index] as Comparison
        if (comparison.type === 'absent') return [[place, []]]
        return comparison.type === 'compared' ? [[place, comparison.differences]] : []
      }),
    )
  }

  /**
   * Redis has an epoch that the row did not have. Read after it, the row must have it: an epoch is raised in Postgres first. If not,
   * Postgres has lost the raise, and whatever else was committed since.
   */
  async #judgeMoved(places: readonly Place[], hot: readonly HotState[], comparisons: Comparison[]): Promise<void> {
    const moved = comparisons.flatMap(({ type }, index) => (type === 'moved' ? [index] : []))
    if (moved.length === 0) return
    const rows = await this.#run.parts.audits.states(moved.map((index) => (places[index] as Place).ref))
    for (const index of moved) {
      const expected = rows.find(({ ref }) => ref === places[index]?.ref)?.state.epoch ?? 0
      const found = hot[index]?.core?.epoch ?? 0
      if (expected >= found) continue
      const difference: Difference = { cause: 'hot_ahead', field: 'epoch', expected, found }
      comparisons[index] = { type: 'compared', differences: [difference] }
    }
  }

  async #settle(suspect: Suspect): Promise<void> {
    const { place } = suspect
    // Nothing could say how it should be.
    if (!(await this.#journals.verify(place.ref))) return
    const [again] = await this.#compare([place])
    const { differences } = agreed(suspect, again)
    if (differences.length === 0) return
    if (!this.#run.mayRepair(differences)) return this.#run.report(place, differences, 'reported')
    const repaired = await this.#run.attempted(() => this.#reload(place))
    await this.#run.report(place, differences, repaired ? 'repaired' : 'failed')
  }

  /** True: it is as its journal says now. */
  async #reload(place: Place): Promise<boolean> {
    const { audits, touch } = this.#run.parts
    const [row] = await audits.states([place.ref])
    if (!row) return false
    await touch(place, row.state.epoch + 1)
    const [after] = await this.#compare([place])
    return after !== undefined && after.differences.length === 0
  }
}

const isSame = (comparison: Comparison | undefined): boolean =>
  comparison?.type === 'compared' && comparison.differences.length === 0

/** Is there anything that somebody should look after? A state of another life is past, but for what was acknowledged from memory. */
const isThere = ({ why, pending }: HotState): boolean =>
  why === 'trusted' || why === 'unreadable' || (why === 'incarnation' && pending.length > 0)

/** Only a matter of time, where the others are a matter of what stands there. */
const isLate = ({ cause }: Difference): boolean => cause === 'pending_too_old'

/** What two looks agree on: the same thing wrong with the same number, whatever its value is by now. */
function agreed({ place, differences }: Suspect, again: Suspect | undefined): Suspect {
  const both = again?.differences.filter((one) =>
    differences.some(({ cause, field, hold }) => cause === one.cause && field === one.field && hold === one.hold),
  )
  return { place, differences: both ?? [] }
}

function isOfRedis(error: unknown): boolean {
  return error instanceof RedisUnavailable || error instanceof ScriptError
}
