/**
 * Puts Redis and Postgres on one foot again after Postgres was restored to an earlier point, or failed over and lost commits. Postgres wins;
 * what Redis still knows of what is lost is handed out before anything goes on.
 *
 *     stop       nothing is decided any more (most often it was stopped when the loss was found); what was under way in Postgres ends
 *     hand out   every wallet in Redis: entries that the journal lacks are handed to `onEntry`, and its state is not believed any more
 *     lift       one statement: from now on only epochs count that are above all that were ever used
 *
 * Only the last step changes what counts, in one statement. Whatever dies before it leaves everything stopped, and the next run does all of
 * it again. After it there is nothing left to do, and another run says so.
 */
import type { Journal, WalletRow, Witness } from '../journal/index.js'
import type { Entry } from '../machine/index.js'
import type { Place } from '../redis/index.js'
import type { Recollection, Sequencer } from '../sequencer/index.js'

export interface Reconcilable extends Pick<Journal, 'prove' | 'stop' | 'read'> {
  /** Returns when whatever was being written when things were stopped is written, or not. */
  quiesce(): Promise<void>
  /** Things go on, under epochs above this one and all that Postgres knows. Returns the new floor; null: that stop is over. */
  lift(epoch: number, stoppedAt: number): Promise<number | null>
}

export interface ReconcileParts {
  readonly journal: Reconcilable
  readonly sequencer: Pick<Sequencer, 'recall' | 'distrust' | 'shareWitness'>
  readonly witnessesKey: string
  /** Every wallet that Redis has something of, in portions; also those of another database that shares it. */
  places(): AsyncIterable<readonly Place[]>
}

/** An entry that Redis still has and the journal has not. */
export interface LostEntry extends Omit<Entry, 'due' | 'since'> {
  readonly tenant: string
  /** Null: the wallet itself is missing in Postgres, and only there its id is written. `ref` is what stands for it elsewhere. */
  readonly wallet: string | null
  readonly ref: string
  /** `yes`: it was in the journal. `memory`: acknowledged from memory, and perhaps not in it yet. `perhaps`: it was on its way. */
  readonly acknowledged: 'yes' | 'memory' | 'perhaps'
  /** Acknowledged from memory and not in the journal yet: it is decided again when the wallet is loaded. */
  readonly decidedAgain: boolean
}

export interface WalletAhead {
  readonly tenant: string
  readonly wallet: string | null
  readonly ref: string
  readonly journalSeq: number
  readonly redisSeq: number
  /** Entries that were handed out. */
  readonly entries: number
  /** Entries that are known to have been in the journal, and that Redis does not remember either. */
  readonly forgotten: number
  /** `available` in the journal, and as Redis last knew it. */
  readonly journalAvailable: number
  readonly redisAvailable: number
}

export interface ReconcileReport {
  /** Postgres lacks something that was acknowledged, or was stopped because of that. */
  readonly needed: boolean
  /** Things go on now. */
  readonly done: boolean
  readonly because: string | null
  /** Wallets of this database that Redis has a state of. */
  readonly wallets: number
  readonly walletsAhead: number
  readonly entries: number
  readonly acknowledged: number
  readonly forgotten: number
  /** The first hundred. */
  readonly ahead: readonly WalletAhead[]
  /** Epochs up to this one are past. */
  readonly floor: number
}

export interface ReconcileOptions {
  /** Look, and change nothing. What is on its way at the time is told among the entries. Default false. */
  readonly dryRun?: boolean
  /** Gets every entry that the journal lacks. It is waited for. */
  readonly onEntry?: (entry: LostEntry) => void | Promise<void>
  /** Called when all entries were handed out, and before anything goes on: the time to make sure that they are kept. */
  readonly onExported?: () => void | Promise<void>
}

const AHEAD_TOLD = 100

interface Survey {
  wallets: number
  walletsAhead: number
  entries: number
  acknowledged: number
  forgotten: number
  ahead: WalletAhead[]
  /** The latest epoch of any state. */
  epoch: number
  /** The latest epoch of what the journal lacks and had. */
  lostEpoch: number
}

export async function reconcile(parts: ReconcileParts, options: ReconcileOptions = {}): Promise<ReconcileReport> {
  const { journal } = parts
  const witnesses = await witnessesOf(parts)
  const { stopped, missing, floor } = await journal.prove(witnesses)
  const suspected = stopped !== null || missing.length > 0
  if (options.dryRun || !suspected) {
    const survey = await look(parts, witnesses, options.dryRun ? options : {}, false)
    const needed = suspected || survey.lostEpoch > 0
    const why = stopped?.because ?? null
    if (options.dryRun || !needed) return report(survey, { needed, done: false, because: why, floor })
    await journal.stop(survey.lostEpoch, 'Redis knows of entries in the journal that are not there')
  } else if (stopped === null) {
    await journal.stop(Math.max(...missing.map(({ epoch }) => epoch)), because(missing[0] as Witness))
  }
  // Who else reconciles at the same time may be done, and something else have happened since: this run lifts this stop and no other.
  const { stopped: stop } = await journal.prove([])
  if (stop === null) return reconcile(parts, options)
  await journal.quiesce()
  const survey = await look(parts, witnesses, options, true)
  await options.onExported?.()
  const lifted = await journal.lift(Math.max(survey.epoch, ...witnesses.map(({ epoch }) => epoch)), stop.at)
  return report(survey, { needed: true, done: true, because: stop.because, floor: lifted ?? floor })
}

function because({ ref, seq }: Witness): string {
  return `entry ${seq} of wallet ${ref} was acknowledged and is missing`
}

function report(
  survey: Survey,
  outcome: Pick<ReconcileReport, 'needed' | 'done' | 'because' | 'floor'>,
): ReconcileReport {
  const { epoch: _, lostEpoch: __, ...counts } = survey
  return { ...outcome, ...counts }
}

function witnessesOf({ sequencer, witnessesKey }: ReconcileParts): Promise<Witness[]> {
  return sequencer.shareWitness(witnessesKey, '', null)
}

/** Goes through every wallet in Redis and compares what it remembers with the journal. */
async function look(
  parts: ReconcileParts,
  witnesses: readonly Witness[],
  options: ReconcileOptions,
  distrust: boolean,
): Promise<Survey> {
  const survey: Survey = {
    wallets: 0,
    walletsAhead: 0,
    entries: 0,
    acknowledged: 0,
    forgotten: 0,
    ahead: [],
    epoch: 0,
    lostEpoch: 0,
  }
  for await (const places of parts.places()) {
    const rows = new Map((await parts.journal.read(places.map(({ ref }) => ref))).map((row) => [row.ref, row]))
    for (const place of places) {
      const memory = await parts.sequencer.recall(place)
      const row = rows.get(place.ref) ?? null
      // Neither in Postgres nor on the agenda: of another database that shares this Redis.
      if (!memory || (!row && !memory.listed)) continue
      survey.wallets += 1
      learnAcknowledged(memory, place.ref, witnesses)
      survey.epoch = Math.max(survey.epoch, memory.core.epoch)
      const isAhead = await compare(parts, place, row, memory, options, survey)
      if (isAhead && distrust) await parts.sequencer.distrust(place, memory.core.epoch)
    }
  }
  return survey
}

/** Redis hears with the next command what is in the journal, and for the last ones no next command came: witnesses know of some. */
function learnAcknowledged({ core, entries }: Recollection, ref: string, witnesses: readonly Witness[]): void {
  for (const witness of witnesses) {
    const isOfThis = witness.ref === ref && entries.some(({ entry }) => entry.hash === witness.hash)
    if (isOfThis && witness.seq > core.acked) core.acked = witness.seq
  }
}

async function compare(
  { journal }: ReconcileParts,
  { tenant, ref }: Place,
  row: WalletRow | null,
  { core, entries }: Recollection,
  { onEntry }: ReconcileOptions,
  survey: Survey,
): Promise<boolean> {
  const { missing, settled } = await journal.prove(entries.map(({ entry }) => ({ ref, ...entry })))
  const hashes = new Set(missing.map(({ hash }) => hash))
  const lost = entries.filter(({ entry }) => hashes.has(entry.hash))
  const journalSeq = row?.seq ?? 0
  const remembered = entries.filter(({ entry: { seq } }) => seq > journalSeq && seq <= core.acked).length
  // A state from before the last time that this was done was handed out then.
  const past = core.epoch <= settled
  const forgotten = past ? 0 : Math.max(0, core.acked - journalSeq - remembered)
  const acknowledged = lost.filter(({ entry }) => entry.seq <= core.acked).length
  if (acknowledged + forgotten > 0) survey.lostEpoch = Math.max(survey.lostEpoch, core.epoch)
  survey.forgotten += forgotten
  survey.entries += lost.length
  survey.acknowledged += acknowledged
  for (const { entry, memory } of lost) {
    const { due: _, since: __, ...told } = entry
    const pending = entry.seq > core.acked
    await onEntry?.({
      tenant,
      wallet: row?.id ?? null,
      ref,
      ...told,
      acknowledged: pending ? (memory ? 'memory' : 'perhaps') : 'yes',
      decidedAgain: pending && memory,
    })
  }
  if (lost.length + forgotten === 0) return false
  survey.walletsAhead += 1
  if (survey.ahead.length < AHEAD_TOLD) {
    survey.ahead.push({
      tenant,
      wallet: row?.id ?? null,
      ref,
      journalSeq,
      redisSeq: core.seq,
      entries: lost.length,
      forgotten,
      journalAvailable: row?.available ?? 0,
      redisAvailable: core.available,
    })
  }
  return true
}
