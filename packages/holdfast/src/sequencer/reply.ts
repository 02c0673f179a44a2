import {
  type Entry,
  entryEnd,
  type HoldState,
  isWhole,
  type RejectionCode,
  unpackEntry,
  type WalletState,
  type WalletStatus,
} from '../machine/index.js'
import { MessageReader } from './message.js'

/** What a refusal rests on: the journal must hold this head under this epoch before anybody is told "no". */
export interface Rest {
  epoch: number
  seq: number
  head: string
}

/** A look at what is due: the next expiry (a lower bound; 0 for none) of the state with this epoch and seq. */
export interface Touch {
  due: number
  epoch: number
  seq: number
}

/** Why a state in Redis is not to be trusted. */
export type Distrust = 'missing' | 'incarnation' | 'epoch' | 'stock' | 'error'

/** What the script says to one command. Rejections carry their facts as they came: names and numbers. */
export type Answer =
  | { type: 'accepted'; seq: number }
  /** `memory`: it may be acknowledged from memory, because it was made to be: should it be lost on its way, it is decided again. */
  | { type: 'replay'; entry: Entry; memory: boolean }
  | { type: 'rejected'; rest: Rest; code: RejectionCode; facts: Record<string, number> }
  | { type: 'conflict'; rest: Rest }
  | { type: 'touched'; touch: Touch }
  | { type: 'untrusted'; why: Distrust; epoch: number }
  | { type: 'late' | 'seen' | 'more' | 'facts' | 'full' | 'unmarked' }
  | { type: 'error'; message: string; epoch: number }

/** What is pending in a wallet, as far as the caller did not have it yet, and up to where Redis knows it to be in the journal. */
export interface PendingRun {
  epoch: number
  acked: number
  entries: Entry[]
}

export interface Look {
  why: 'trusted' | Distrust
  epoch: number
  lease: 'leased' | 'busy' | ''
  /** The state as far as it stands in its core; null when there is none. */
  core: CoreState | null
  clock: number
  /** Which life of the server was looked at. */
  life: string
  /** The last entry that Redis knows to be in the journal, if it remembers it. */
  last: Entry | null
  pending: { entry: Entry; memory: boolean }[]
}

/** All that Redis says of a wallet, as of one moment. */
export interface HotState {
  /** `unreadable`: something stands in its place that is no wallet, or a head, holds or entries of it that are none. */
  why: 'trusted' | 'missing' | 'incarnation' | 'unreadable'
  /** Redis's clock, ms. */
  clock: number
  core: CoreState | null
  holds: Map<string, HoldState>
  /** Entries behind `acked`, as far as they are there without a hole. Of another life: the oldest that was acknowledged from memory, if any. */
  pending: Entry[]
}

/** Fields of a sale's stock, and the state that they belong to, as of one moment. */
export interface HotStock {
  core: CoreState
  /** How many fields there are in all. */
  size: number
  /** Of the fields that were asked for; null: it is not there. */
  values: (string | null)[]
  /** Entries behind `acked`, as far as they are there without a hole. */
  pending: Entry[]
}

/** All that Redis remembers of a wallet, whether it is to be trusted or not. Entries that are not what their hash is of are left out. */
export interface Recollection {
  core: CoreState
  /** It is on the agenda of this database: so it is one of its wallets, whatever Postgres has of it. */
  listed: boolean
  /** Oldest first. What is newer than `core.acked` was pending. */
  entries: { entry: Entry; memory: boolean }[]
}

/** An entry that is known to be in the journal. */
export interface Known {
  ref: string
  epoch: number
  seq: number
  hash: string
}

export type CoreState = Omit<WalletState, 'holds' | 'base' | 'refundedByEntry' | 'closedHolds' | 'stock'> & {
  open: number
  acked: number
  memory: boolean
  /** The time of its last decision, accepted or refused. */
  clock: number
}

export interface BatchReply {
  clock: number
  /** Which life of the server answered. */
  life: string
  runs: (PendingRun | Untrusted)[]
  answers: Answer[]
}

type Untrusted = Extract<Answer, { type: 'untrusted' }>

const TRUSTED = 0
const ACCEPTED = 0
const REPLAY = 1
const REPLAY_MEMORY = 3

/**
 * The reply of `wallet_decide`; `wallets` are those of the commands, by their index. Entries stand in it as they stand in Redis: where
 * somebody has damaged one nobody knows where the next thing begins. Then all of it is unreadable: RangeError.
 */
export function readBatch(bytes: Buffer, walletCount: number, wallets: readonly number[]): BatchReply {
  const reader = new MessageReader(bytes)
  const clock = reader.number()
  const life = reader.life()
  const runs: BatchReply['runs'] = []
  while (runs.length < walletCount) runs.push(readRun(reader))
  const answers: Answer[] = []
  for (const wallet of wallets) answers.push(readAnswer(reader, runs[wallet] as PendingRun | Untrusted))
  if (reader.at !== bytes.length) throw new RangeError(`A reply of ${bytes.length} bytes, read up to ${reader.at}`)
  return { clock, life, runs, answers }
}

function readRun(reader: MessageReader): PendingRun | Untrusted {
  if (reader.byte() !== TRUSTED) {
    const why = reader.string(reader.byte()) as Distrust
    return { type: 'untrusted', why, epoch: reader.number() }
  }
  const run: PendingRun = { epoch: reader.number(), acked: reader.number(), entries: [] }
  for (let left = reader.count(); left > 0; left -= 1) run.entries.push(readEntry(reader))
  return run
}

function readEntry(reader: MessageReader): Entry {
  const entry = unpackEntry(reader.bytes, reader.at)
  reader.at = entryEnd(reader.bytes, reader.at)
  return entry
}

function readAnswer(reader: MessageReader, run: PendingRun | Untrusted): Answer {
  const type = reader.byte()
  if (type === ACCEPTED) return { type: 'accepted', seq: reader.number() }
  if (type === REPLAY || type === REPLAY_MEMORY) {
    return { type: 'replay', entry: readEntry(reader), memory: type === REPLAY_MEMORY }
  }
  return readWords(reader.string(reader.count()).split('\n'), run)
}

function readWords([type, ...rest]: readonly string[], run: PendingRun | Untrusted): Answer {
  switch (type) {
    case 'no': {
      const facts: Record<string, number> = {}
      for (let i = 4; i + 1 < rest.length; i += 2) facts[rest[i] as string] = Number(rest[i + 1])
      return { type: 'rejected', rest: readRest(rest), code: rest[3] as RejectionCode, facts }
    }
    case 'conflict':
      return { type: 'conflict', rest: readRest(rest) }
    case 'touched':
      return { type: 'touched', touch: { due: Number(rest[0]), epoch: Number(rest[1]), seq: Number(rest[2]) } }
    case 'error':
      return { type: 'error', message: rest.join(' '), epoch: 'type' in run ? run.epoch : 0 }
    case 'untrusted':
      return 'type' in run ? run : { type: 'untrusted', why: 'error', epoch: 0 }
    case 'late':
    case 'seen':
    case 'more':
    case 'facts':
    case 'full':
    case 'unmarked':
      return { type }
    default:
      throw new RangeError(`wallet_decide answered ${type}`)
  }
}

/** Stops at the first entry that is missing: what comes after a hole can't be appended anyway. */
function readEntries(reply: readonly (Buffer | null)[], from: number): Entry[] {
  const entries: Entry[] = []
  for (let i = from; i < reply.length; i += 1) {
    const bytes = reply[i]
    if (!bytes) break
    entries.push(unpackEntry(bytes))
  }
  return entries
}

/** Null: it is not in Redis (any more). An entry that somebody has damaged is no reason for the others of the reply not to be looked after. */
export function readTended(reply: readonly Buffer[]): PendingRun | 'broken' | null {
  const [first, acked] = reply
  const epoch = String(first)
  if (epoch === 'gone' || epoch === 'left') return null
  if (epoch === 'broken') return 'broken'
  try {
    return { epoch: Number(epoch), acked: Number(acked), entries: readEntries(reply, 2) }
  } catch (error) {
    if (error instanceof RangeError) return 'broken'
    throw error
  }
}

export function readLook(reply: readonly Buffer[]): Look {
  const [why, epoch, lease, core, clock, life, last, ...pending] = reply
  return {
    why: String(why) as Look['why'],
    epoch: Number(epoch),
    lease: String(lease) as Look['lease'],
    core: core?.length ? readCore(core) : null,
    clock: Number(clock),
    life: String(life),
    last: last?.length ? readWhole(last) : null,
    pending: readMarked(pending),
  }
}

export function readHotStates(reply: readonly [Buffer, ...HotReply[]]): HotState[] {
  const [clock, ...wallets] = reply
  return wallets.map((wallet) => readHotState(wallet, Number(clock)))
}

type HotReply = readonly [why: Buffer, core: Buffer, holds: readonly Buffer[], entries: readonly (Buffer | null)[]]

function readHotState([why, core, holds, entries]: HotReply, clock: number): HotState {
  const hot: HotState = {
    why: String(why) as HotState['why'],
    clock,
    core: core.length > 0 ? readCore(core) : null,
    holds: new Map(),
    pending: [],
  }
  try {
    for (let i = 0; i + 1 < holds.length; i += 2) hot.holds.set(String(holds[i]), readHold(holds[i + 1] as Buffer))
    hot.pending = readEntries(entries, 0)
    if (hot.why === 'trusted' && !HEAD.test(hot.core?.head ?? '')) return { ...hot, why: 'unreadable' }
    return hot
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return { ...hot, why: 'unreadable' }
  }
}

type HotStockReply = readonly [
  why: Buffer,
  core: Buffer,
  size: number,
  values: readonly (Buffer | null)[],
  entries: readonly (Buffer | null)[],
]

/** Null: there is nothing that anybody would go by. */
export function readHotStock([why, core, size, values, entries]: HotStockReply): HotStock | null {
  if (String(why) !== 'trusted') return null
  try {
    const texts = values.map((value) => (value === null ? null : String(value)))
    return { core: readCore(core), size, values: texts, pending: readEntries(entries, 0) }
  } catch (error) {
    if (error instanceof RangeError) return null
    throw error
  }
}

/** `h:<hold>` in lua/wallet/state.lua. */
function readHold(bytes: Buffer): HoldState {
  if (bytes.length !== 40) throw new RangeError('A hold has 40 bytes')
  const number = (index: number): number => bytes.readDoubleLE(8 * index)
  return { amount: number(0), captured: number(1), left: number(2), expiresAt: number(3), refunded: number(4) }
}

export function readRecollection([core, listed, ...rest]: readonly Buffer[]): Recollection | null {
  if (!core?.length) return null
  return { core: readCore(core), listed: String(listed) === '1', entries: readMarked(rest) }
}

/** Entries, each followed by whether it was acknowledged from memory. One that somebody has damaged is as good as missing. */
function readMarked(reply: readonly Buffer[]): { entry: Entry; memory: boolean }[] {
  const entries: { entry: Entry; memory: boolean }[] = []
  for (let i = 0; i + 1 < reply.length; i += 2) {
    const entry = readWhole(reply[i] as Buffer)
    if (entry) entries.push({ entry, memory: String(reply[i + 1]) === '1' })
  }
  return entries
}

/** Null: it is not what its hash is of. */
function readWhole(bytes: Buffer): Entry | null {
  try {
    const entry = unpackEntry(bytes)
    return isWhole(entry) ? entry : null
  } catch (error) {
    if (error instanceof RangeError) return null
    throw error
  }
}

export function writeKnown({ epoch, seq, ref, hash }: Known): string {
  return `${epoch} ${seq} ${ref} ${hash}`
}

const HEAD = /^[0-9a-f]{40}$/
const KNOWN = /^(\d{1,16}) (\d{1,16}) ([0-9a-f]{32}) ([0-9a-f]{40})$/

/** What somebody else wrote there is left out. */
export function readKnown(reply: readonly Buffer[]): Known[] {
  const known: Known[] = []
  for (const text of reply) {
    const [, epoch, seq, ref, hash] = KNOWN.exec(String(text)) ?? []
    if (ref && hash) known.push({ epoch: Number(epoch), seq: Number(seq), ref, hash })
  }
  return known
}

const STATUSES: readonly WalletStatus[] = ['active', 'frozen', 'closed']

const NUMBERS_AT = 3
const HEAD_AT = NUMBERS_AT + 14 * 8 + 32

/** `core` in lua/wallet/state.lua. */
export function readCore(bytes: Buffer): CoreState {
  const number = (index: number): number => bytes.readDoubleLE(NUMBERS_AT + 8 * index)
  return {
    status: STATUSES[bytes.readUInt8(1) - 1] as WalletStatus,
    memory: bytes.readUInt8(2) % 2 === 1,
    epoch: number(0),
    seq: number(1),
    at: number(2),
    available: number(3),
    reserved: number(4),
    creditLimit: number(5),
    due: number(6),
    since: number(7),
    open: number(8),
    acked: number(9),
    clock: number(12),
    head: bytes.toString('latin1', HEAD_AT, HEAD_AT + 40),
  }
}

/** A head that is none would be asked about in Postgres, and fail there with all that is asked together with it. */
function readRest([epoch, seq, head = '']: readonly string[]): Rest {
  if (!HEAD.test(head)) throw new RangeError('A refusal rests on a head that is none')
  return { epoch: Number(epoch), seq: Number(seq), head }
}
