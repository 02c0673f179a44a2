import type { HoldfastError } from '../errors/index.js'
import type { Journal, Owner } from '../journal/index.js'
import type { Place } from '../redis/index.js'
import type { Sequencer } from '../sequencer/index.js'
import type { Telemetry } from '../telemetry/index.js'
import type { Attempt } from './attempt.js'
import type { Checkpoints } from './checkpoints.js'
import type { Circuit } from './circuit.js'
import type { Clock } from './clock.js'
import type { Item, Lane } from './lane.js'
import type { Witnesses } from './witnesses.js'

export interface EngineOptions {
  /** Commands under way in this process; more are refused. */
  readonly attemptsMax: number
  /** Entries waiting for Postgres in this process; when it is full nothing new is decided. */
  readonly backlogMax: number
  readonly timeoutMs: number
  /** Redis has not worked for so long, though it was asked: then its wallets go through Postgres. */
  readonly redisPatienceMs: number
  /** Commands that wait for the Postgres path; more are refused, and from half of it on those that begin something. */
  readonly postgresPathMax: number
  /** Batches of the Postgres path under way. */
  readonly postgresPathBatchesMax: number
  /** How far ahead of this process's time of day Redis's and Postgres's are believed: a jump beyond that must not expire anything. */
  readonly aheadMaxMs: number
  /** Commands a script call. */
  readonly decideBatchMax: number
  /** A call is decided within this time or not at all: as long as one waits for its answer. */
  readonly decideWithinMs: number
  /** Script calls under way for one group of wallets where Redis is near, because batches are what makes it quick; and where it is far away. */
  readonly decideCallsMin: number
  readonly decideCallsMax: number
  readonly appendBatchMax: number
  /**
   * Appends under way; a wallet always goes the same way. One, because the next statement grows while this one commits, and fewer
   * and larger ones are cheaper for everybody. Against two, µs of CPU an operation in Node and in Postgres, everything on two cores:
   * 64 callers 36 + 38 for 49 + 60, 256 callers 31 + 31 for 33 + 37, 1,024 callers 34 + 28 for 37 + 37, two processes with 128
   * callers each 73 + 53 for 80 + 77; a hot wallet goes one way in any case.
   */
  readonly appendLanes: number
  readonly loadsMax: number
  readonly leaseMs: number
  /** A state is installed so soon after Redis was heard of, if its epoch was raised after that, or still current then; or not at all. */
  readonly installWithinMs: number
  /** How long a contended wallet stays on the Postgres path. */
  readonly postgresSpellMs: number
  /** How often at most a wallet that nobody uses here is taken back from those who go on without Redis, because of what Redis has left of it. */
  readonly takeBackEveryMs: number
  readonly sweepEveryMs: number
  readonly claimMs: number
  readonly claimMax: number
  /** How long after its expiry a cold wallet's hold is looked for in Postgres. */
  readonly dueGraceMs: number
  /** An open hold this many entries back: time to note the open holds. */
  readonly checkpointAfter: number
  readonly lanesMax: number
  /** The hold of a transfer, or of a purchase, is made so soon after that was written down, or not at all. */
  readonly transferHoldWithinMs: number
  /** One that nobody has set to work on for so long is brought to its end by whoever sees it. Longer than a hold may take to come. */
  readonly transferGraceMs: number
  /** How often at most Redis is told what this process knows to be in the journal. */
  readonly witnessEveryMs: number
  /** How often Postgres is asked whether it still has what was acknowledged. */
  readonly proveEveryMs: number
  /** Postgres did not answer for so long: what comes then is refused before it is decided, and does not wait with the others. */
  readonly postgresPatienceMs: number
}

export const DEFAULT_OPTIONS: EngineOptions = {
  attemptsMax: 20_000,
  backlogMax: 50_000,
  timeoutMs: 10_000,
  redisPatienceMs: 20,
  postgresPathMax: 10_000,
  postgresPathBatchesMax: 2,
  aheadMaxMs: 60_000,
  decideBatchMax: 32,
  decideWithinMs: 2_000,
  decideCallsMin: 2,
  decideCallsMax: 32,
  appendBatchMax: 1_000,
  appendLanes: 1,
  loadsMax: 128,
  leaseMs: 1_000,
  installWithinMs: 5_000,
  postgresSpellMs: 1_000,
  takeBackEveryMs: 60_000,
  sweepEveryMs: 1_000,
  claimMs: 5_000,
  claimMax: 64,
  dueGraceMs: 3_000,
  checkpointAfter: 1_000,
  lanesMax: 50_000,
  transferHoldWithinMs: 3_000,
  transferGraceMs: 6_000,
  witnessEveryMs: 100,
  proveEveryMs: 5_000,
  postgresPatienceMs: 5_000,
}

/** By how much Redis's or Postgres's clock may be set back without a deadline being missed. */
export const CLOCK_SLACK_MS = 250

/** What the parts of the engine share. */
export interface Context {
  readonly sequencer: Sequencer
  readonly journal: Journal
  readonly clock: Clock
  readonly options: EngineOptions
  readonly telemetry: Telemetry
  /** Who this process is, in leases. */
  readonly asker: string
  /** Is Postgres there? While it is not, nothing is decided that could not be acknowledged. */
  readonly postgres: Circuit
  readonly witnesses: Witnesses
  readonly checkpoints: Checkpoints
  /** Why nothing is decided just now, for a caller who wants this; null: nothing is in the way. */
  turnedAway(memory: boolean): HoldfastError | null
  /** Is Redis there, for the wallets of this place? */
  redisAt(place: Place): Circuit
  /** Postgres's clock, as far as it is known, never later than it is. */
  postgresNow(): number
  learnPostgresClock(clock: number): void
  /** Sends an attempt where it belongs now. */
  route(attempt: Attempt): void
  /** Decides anew what did not come to pass: after a pause, and after a look into the journal. */
  again(attempt: Attempt): void
  /** Another process decides for the wallet, under this epoch and on this path. */
  follow(lane: Lane, owner: Owner, epoch: number): void
  /**
   * Tells a caller no, or to come again later. Not while an earlier call of the same attempt may still be decided, and otherwise: a caller who
   * asks again elsewhere would be told no beside an open question. Then it is decided anew when that is over.
   */
  refuse(attempt: Attempt, error: HoldfastError): void
  /** A refund rests on what the journal knows of the charge: reads it, and decides then. */
  readCharge(attempt: Attempt, epoch: number): void
  /**
   * Redis has something that the journal will never take, and all that comes behind it neither: has the wallet loaded anew, also if nobody asks
   * for it. It may be a week until somebody does, and what was acknowledged from memory must not wait for that.
   */
  reload(place: Place): void
  /** Appends entries. */
  file(items: readonly Item[]): void
  /** How long an entry of this wallet that comes now would wait for the journal, ms: 0 unless there is more than goes with the next statement. */
  appendWaitMs(place: Place): number
  /** Nothing more can be taken on that Postgres would have to remember. */
  full(): boolean
  /** The engine was closed: what still fails is not tried again. Others will find it in Redis. */
  ended(): boolean
}
