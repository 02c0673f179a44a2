import { type Entry, type RejectionCode, unpackEntry, type WalletState, type WalletStatus } from '../machine/index.js'

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
export type Distrust = 'missing' | 'incarnation' | 'epoch' | 'error'

/** What the script says to one command. Rejections carry their facts as they came: names and numbers. */
export type Answer =
  | { type: 'accepted'; seq: number }
  | { type: 'replay'; entry: Entry }
  | { type: 'rejected'; rest: Rest; code: RejectionCode; facts: Record<string, number> }
  | { type: 'conflict'; rest: Rest }
  | { type: 'late'; clock: number }
  | { type: 'touched'; touch: Touch }
  | { type: 'untrusted'; why: Distrust; epoch: number }
  | { type: 'seen' | 'more' | 'facts' | 'full' | 'unmarked' }
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
  pending: { entry: Entry; memory: boolean }[]
}

export type CoreState = Omit<WalletState, 'holds' | 'base' | 'refundedByEntry' | 'closedHolds'> & {
  open: number
  acked: number
  memory: boolean
}

export function readAnswer(reply: readonly string[], run: PendingRun | Answer): Answer {
  const [type, ...rest] = reply
  switch (type) {
    case 'ok':
      return { type: 'accepted', seq: Number(rest[0]) }
    case 'replay':
      return { type: 'replay', entry: unpackEntry(rest[1] as string) }
    case 'no': {
      const facts: Record<string, number> = {}
      for (let i = 4; i + 1 < rest.length; i += 2) facts[rest[i] as string] = Number(rest[i + 1])
      return { type: 'rejected', rest: readRest(rest), code: rest[3] as RejectionCode, facts }
    }
    case 'conflict':
      return { type: 'conflict', rest: readRest(rest) }
    case 'late':
      return { type: 'late', clock: Number(rest[0]) }
    case 'touched':
      return { type: 'touched', touch: { due: Number(rest[0]), epoch: Number(rest[1]), seq: Number(rest[2]) } }
    case 'error':
      return { type: 'error', message: String(rest[0]), epoch: 'type' in run && 'epoch' in run ? run.epoch : 0 }
    case 'untrusted':
      return 'type' in run ? run : { type: 'untrusted', why: 'error', epoch: 0 }
    case 'seen':
    case 'more':
    case 'facts':
    case 'full':
    case 'unmarked':
      return { type }
    default:
      throw new Error(`wallet_decide answered ${type}`)
  }
}

export function readRun(reply: readonly string[]): PendingRun | Answer {
  if (reply[0] === 'untrusted') return { type: 'untrusted', why: reply[1] as Distrust, epoch: Number(reply[2]) }
  return { epoch: Number(reply[0]), acked: Number(reply[1]), entries: readEntries(reply, 2) }
}

/** Stops at the first entry that is missing: what comes after a hole can't be appended anyway. */
export function readEntries(reply: readonly (string | null)[], from: number): Entry[] {
  const entries: Entry[] = []
  for (let i = from; i < reply.length; i += 1) {
    const text = reply[i]
    if (text === null || text === undefined) break
    entries.push(unpackEntry(text))
  }
  return entries
}

export function readLook(reply: readonly string[]): Look {
  const [why, epoch, lease, core] = reply
  const pending: Look['pending'] = []
  for (let i = 4; i + 1 < reply.length; i += 2) {
    pending.push({ entry: unpackEntry(reply[i] as string), memory: reply[i + 1] === '1' })
  }
  return {
    why: why as Look['why'],
    epoch: Number(epoch),
    lease: lease as Look['lease'],
    core: core ? readCore(core) : null,
    pending,
  }
}

/** The words of `core` in lua/wallet/state.lua. */
function readCore(text: string): CoreState {
  const word = text.split(' ')
  return {
    epoch: Number(word[0]),
    seq: Number(word[2]),
    head: word[3] as string,
    at: Number(word[4]),
    available: Number(word[5]),
    reserved: Number(word[6]),
    creditLimit: Number(word[7]),
    status: word[8] as WalletStatus,
    due: Number(word[9]),
    since: Number(word[10]),
    open: Number(word[11]),
    acked: Number(word[12]),
    memory: word[15] === '1',
  }
}

function readRest(words: readonly string[]): Rest {
  return { epoch: Number(words[0]), seq: Number(words[1]), head: words[2] as string }
}
