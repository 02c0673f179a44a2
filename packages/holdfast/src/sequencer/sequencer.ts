import { type Command, type Entry, type Line, packEntry, readLines, type WalletState } from '../machine/index.js'
import type { Place, ScriptRunner } from '../redis/index.js'
import {
  agendaClaim,
  agendaScan,
  loadRenew,
  redisProbe,
  serverClock,
  stockInspect,
  stockRunning,
  stockStage,
  stockUnstage,
  walletDecide,
  walletDistrust,
  walletInspect,
  walletInstall,
  walletLook,
  walletRecall,
  walletTend,
  witnessShare,
} from '../redis/scripts.generated.js'
import { MessageWriter, markBytes } from './message.js'
import {
  type BatchReply,
  type HotState,
  type HotStock,
  type Known,
  type Look,
  type PendingRun,
  type Recollection,
  readBatch,
  readHotStates,
  readHotStock,
  readKnown,
  readLook,
  readRecollection,
  readTended,
  writeKnown,
} from './reply.js'
import { stockParts, stockSize } from './stock.js'

/** What the caller knows about a wallet, told along with its commands. */
export interface Knowledge {
  readonly place: Place
  /** States of an older epoch are not to be trusted. */
  readonly epochMin: number
  /** The epoch that the next two are about. */
  readonly epoch: number
  /** Up to here the journal has it. */
  readonly acked: number
  /** Up to here the caller has the entries, appended or about to be. */
  readonly known: number
}

export interface SequencedCommand {
  readonly command: Command
  /** Redis's clock, ms: after this it must not be decided any more. */
  readonly deadline: number
  readonly memory: boolean
}

export interface Batch {
  /** The life of the Redis server by whose clock the deadlines are, null for none; in another one nothing is decided. */
  readonly life: string | null
  readonly wallets: readonly Knowledge[]
  /** `wallet` is an index into `wallets`. */
  readonly commands: readonly (SequencedCommand & { readonly wallet: number })[]
}

/** A few milliseconds of the server's time. Lua passes on no more than 8,000 at once. */
const STAGED_WORDS = 4_000
/** What nobody took over is gone by itself. */
const STAGED_MS = 60_000

/** Of one load alone. */
const stagedKey = ({ stockKey }: Place, asker: string, epoch: number): string => `${stockKey}:${epoch}:${asker}`

export interface Installation {
  readonly place: Place
  readonly state: WalletState
  readonly memory: boolean
  /** By the clock of the Redis server that was looked at, ms: an install that comes later, or to another one, is refused. */
  readonly deadline: number
  readonly life: string
  readonly clock: number
  /** The journal's last entries, oldest first, up to `state`'s: at most `REMEMBERED`. */
  readonly recent: readonly Entry[]
  /** Keys among the pending entries that are not to be decided again: the journal has them, or will never take them. */
  readonly finalKeys: readonly string[]
}

export type InstallReply =
  | { type: 'installed'; lost: { key: string; code: string }[] }
  | { type: 'newer'; epoch: number }
  | { type: 'late' | 'incomplete' }

/** An open checkout. */
export interface Running {
  readonly hold: string
  readonly expiresAt: number
  readonly lines: readonly Line[]
}

export interface SequencerOptions {
  /** How far ahead of the caller's clock Redis's clock is believed: a jump beyond that must not expire anything. */
  readonly aheadMaxMs: number
  /** After this somebody should see to an entry that is still pending. */
  readonly helpAfterMs: number
  readonly idleAfterMs: number
  readonly pendingMax: number
  /** The caller's clock: the time of day, ms. */
  readonly now: () => number
}

/** Of so many processes, running or gone, the latest witness is kept. */
const WITNESSES_MAX = 64

const BEYOND = 1
const MEMORY = 2
const REFUND = 4
const KNOWN = 8

/** Decides in Redis: puts commands into the words of the scripts and reads their answers. No decision is taken here. */
export class Sequencer {
  readonly #runner: ScriptRunner
  readonly #options: SequencerOptions
  readonly #message = new MessageWriter()

  constructor(runner: ScriptRunner, options: SequencerOptions) {
    this.#runner = runner
    this.#options = options
  }

  /** Entries that a wallet may have pending. */
  get pendingMax(): number {
    return this.#options.pendingMax
  }

  async decide({ life, wallets, commands }: Batch): Promise<BatchReply> {
    const { aheadMaxMs, helpAfterMs, pendingMax, now } = this.#options
    const keys: string[] = []
    const agendas = new Map<string, number>()
    for (const { place } of wallets) {
      if (agendas.has(place.agendaKey)) continue
      keys.push(place.agendaKey)
      agendas.set(place.agendaKey, keys.length)
    }
    const message = this.#message
    message.begin()
    message.number(now())
    message.number(aheadMaxMs)
    message.number(helpAfterMs)
    message.number(pendingMax)
    message.short(agendas.size)
    message.short(wallets.length)
    message.life(life)
    for (const { place } of wallets) keys.push(place.walletKey)
    for (const { place, epochMin, epoch, acked, known } of wallets) {
      message.short(agendas.get(place.agendaKey) as number)
      message.short(place.isSale ? keys.push(place.stockKey) : 0)
      message.string(place.agendaName, 2)
      message.number(epochMin)
      message.number(epoch)
      message.number(acked)
      message.number(known)
    }
    for (const command of commands) this.#write(command)
    const reply = (await this.#runner.run(walletDecide, keys, [commands.length, message.take()])) as Buffer
    return readBatch(
      reply,
      wallets.length,
      commands.map(({ wallet }) => wallet),
    )
  }

  #write({ wallet, command, deadline, memory }: Batch['commands'][number]): void {
    const message = this.#message
    const { kind, facts } = command
    message.short(wallet + 1)
    message.byte(
      (command.beyond ? BEYOND : 0) + (memory ? MEMORY : 0) + (kind === 'refund' ? REFUND : 0) + (facts ? KNOWN : 0),
    )
    message.string(kind, 1)
    message.markedString(command.key, 2)
    message.string(command.params, 2)
    message.string(command.hold, 2)
    message.string(command.counter, 2)
    message.string(command.metadata, 4)
    message.number(command.amount)
    message.number(command.ttlMs)
    message.number(deadline)
    if (kind === 'refund') {
      message.number(command.of)
      message.number(command.charge)
    }
    if (!facts) return
    message.number(facts.epoch)
    message.number(facts.seq)
    message.number(facts.refunded)
    message.byte(facts.holdClosed ? 1 : 0)
    message.number(facts.hold.charged)
    message.number(facts.hold.refunded)
  }

  /** `leaseMs` 0: only look. */
  async look(place: Place, epochMin: number, asker: string, leaseMs: number): Promise<Look> {
    const keys = [place.walletKey, place.leaseKey, place.stockKey]
    return readLook((await this.#runner.run(walletLook, keys, [epochMin, asker, leaseMs])) as Buffer[])
  }

  /** This process is still loading the wallet: others go on waiting. */
  async renewLoad(place: Place, asker: string, leaseMs: number): Promise<void> {
    await this.#runner.run(loadRenew, [place.leaseKey], [asker, leaseMs])
  }

  /** The time by which a command for this place would be decided, if it came now. */
  async now(place: Place): Promise<number> {
    const { aheadMaxMs, now } = this.#options
    const clock = (await this.#runner.run(serverClock, [place.walletKey], [])) as number
    return Math.min(clock, now() + aheadMaxMs)
  }

  /** An open checkout, by its code or the one that a buyer has running; null: there is none. `untrusted`: Redis can't say. */
  async running(
    place: Place,
    epochMin: number,
    of: { readonly buyer: string } | { readonly code: string },
  ): Promise<Running | null | 'untrusted'> {
    const keys = [place.walletKey, place.stockKey]
    const field = 'buyer' in of ? `u:${of.buyer}` : `c:${of.code}`
    const reply = ((await this.#runner.run(stockRunning, keys, [epochMin, field])) as Buffer[]).map(String)
    const [why, hold, expiresAt, words] = reply
    if (why !== 'trusted') return 'untrusted'
    if (hold === undefined) return null
    return { hold, expiresAt: Number(expiresAt), lines: readLines((words as string).split(' ').slice(2)) }
  }

  /** All that Redis remembers of a wallet; null: nothing that can be read. */
  async recall({ agendaKey, walletKey, agendaName }: Place): Promise<Recollection | null> {
    return readRecollection((await this.#runner.run(walletRecall, [agendaKey, walletKey], [agendaName])) as Buffer[])
  }

  /** Nobody believes the wallet's state any more, if it is of an epoch up to this one. */
  async distrust({ walletKey }: Place, epoch: number): Promise<void> {
    await this.#runner.run(walletDistrust, [walletKey], [epoch])
  }

  /** Notes what this process knows to be in the journal, and tells what others do. `note` null: only tells. */
  async shareWitness(key: string, asker: string, note: { number: number; known: Known } | null): Promise<Known[]> {
    const args = [asker, note?.number ?? 0, note ? writeKnown(note.known) : '', WITNESSES_MAX]
    return readKnown((await this.#runner.run(witnessShare, [key], args)) as Buffer[])
  }

  /**
   * Before a sale is installed its stock is set aside beside it, a part at a time: it may have a million fields, and others want their turn.
   * Returns the server's clock at the last of them; null: there was nothing to set aside.
   */
  async stage(asker: string, place: Place, { stock, epoch }: WalletState): Promise<number | null> {
    let clock: number | null = null
    for (const part of stock ? stockParts(stock, STAGED_WORDS) : []) {
      clock = (await this.#runner.run(stockStage, [stagedKey(place, asker, epoch)], [STAGED_MS, ...part])) as number
    }
    return clock
  }

  /** What was set aside for an install that has not come to pass. */
  async unstage(asker: string, place: Place, epoch: number): Promise<void> {
    await this.#runner.run(stockUnstage, [stagedKey(place, asker, epoch)], [])
  }

  async install(asker: string, installation: Installation): Promise<InstallReply> {
    const { place, state, memory, deadline, life, clock, recent, finalKeys } = installation
    // A sale without its stock would be one of which nothing is sold yet.
    if (place.isSale !== (state.stock !== null))
      throw new RangeError('A sale is installed with its stock, a wallet has none')
    const args: (string | number | Buffer)[] = [
      place.agendaName,
      asker,
      deadline,
      life,
      this.#options.helpAfterMs,
      this.#options.idleAfterMs,
      state.epoch,
      state.seq,
      state.head,
      state.at,
      state.available,
      state.reserved,
      state.creditLimit,
      state.status,
      state.due,
      state.since,
      memory ? '1' : '0',
      Math.max(clock, state.at),
      place.isSale ? '1' : '0',
      state.holds.size,
    ]
    args.push(state.stock ? stockSize(state.stock) : 0, recent.length)
    for (const [id, hold] of state.holds) {
      args.push(id, `${hold.amount} ${hold.captured} ${hold.left} ${hold.expiresAt} ${hold.refunded}`)
    }
    for (const entry of recent) args.push(markBytes(entry.key), packEntry(entry))
    args.push(...finalKeys)
    const staged = stagedKey(place, asker, state.epoch)
    const keys = [place.agendaKey, place.walletKey, place.leaseKey, place.stockKey, staged, `${place.stockKey}:never`]
    const reply = ((await this.#runner.run(walletInstall, keys, args)) as Buffer[]).map(String)
    if (reply[0] === 'late' || reply[0] === 'incomplete') return { type: reply[0] }
    if (reply[0] === 'newer') return { type: 'newer', epoch: Number(reply[1]) }
    const lost: { key: string; code: string }[] = []
    for (let i = 2; i + 1 < reply.length; i += 2) lost.push({ key: reply[i] as string, code: reply[i + 1] as string })
    return { type: 'installed', lost }
  }

  /** Resolves if the node that has this key is there, and writes. */
  async probe(key: string): Promise<void> {
    await this.#runner.run(redisProbe, [key], [])
  }

  /** Names on a shard's agenda whose time has come, taken for `takenMs`. */
  async claim(agendaKey: string, most: number, takenMs: number): Promise<string[]> {
    return ((await this.#runner.run(agendaClaim, [agendaKey], [most, takenMs])) as Buffer[]).map(String)
  }

  /** Names on a shard's agenda, which are its wallets in Redis; a part at a time, some perhaps twice. Go on with `next` until it is 0. */
  async scan(agendaKey: string, from: string, most: number): Promise<{ next: string; names: string[] }> {
    const [next, words] = (await this.#runner.run(agendaScan, [agendaKey], [from, most])) as [Buffer, Buffer[]]
    return { next: String(next), names: words.filter((_, index) => index % 2 === 0).map(String) }
  }

  /** All that Redis says of wallets of one shard. */
  async inspect(places: readonly Place[]): Promise<HotState[]> {
    const keys = places.map(({ walletKey }) => walletKey)
    const reply = await this.#runner.run(walletInspect, keys, [keys.length])
    return readHotStates(reply as Parameters<typeof readHotStates>[0])
  }

  /** What Redis says of these fields of a sale's stock; null: nothing that anybody would go by. */
  async inspectStock({ walletKey, stockKey }: Place, fields: readonly string[]): Promise<HotStock | null> {
    const reply = await this.#runner.run(stockInspect, [walletKey, stockKey], [...fields])
    return readHotStock(reply as Parameters<typeof readHotStock>[0])
  }

  /** Looks after wallets of one shard. For each: what is pending, null when it is not in Redis (any more), or that it is broken. */
  async tend(
    agendaKey: string,
    wallets: readonly Omit<Knowledge, 'known' | 'epochMin'>[],
  ): Promise<(PendingRun | 'broken' | null)[]> {
    const { aheadMaxMs, helpAfterMs, idleAfterMs, now } = this.#options
    const keys = [agendaKey]
    const args: (string | number)[] = [wallets.length, now(), aheadMaxMs, helpAfterMs, idleAfterMs]
    for (const { place } of wallets) keys.push(place.walletKey)
    for (const { place, epoch, acked } of wallets) {
      args.push(place.agendaName, epoch, acked, place.isSale ? keys.push(place.stockKey) : 0)
    }
    const reply = (await this.#runner.run(walletTend, keys, args)) as [Buffer, ...Buffer[][]]
    return (reply.slice(1) as Buffer[][]).map(readTended)
  }
}
