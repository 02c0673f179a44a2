import { HoldfastError } from '../errors/index.js'
import type { Filed, Journal, Standing, Verdict, Witness } from '../journal/index.js'
import type { Context } from './context.js'

/** One for each append, the last so many: those that were under way at once may be answered in another order than they were committed. */
const KEPT = 16

/**
 * Remembers what is known to be in the journal, here and in Redis, and asks now and then whether it still is. A Postgres that was restored
 * to an earlier point, or failed over to a replica that missed commits, can't know that it lacks anything. Commits are kept in order, so
 * having the latest is having all.
 */
export class Witnesses {
  readonly #context: Context
  readonly #key: string
  readonly #appended: Witness[] = []
  readonly #found: Witness[] = []
  #appends = 0
  #finds = 0
  #shared = 0
  #cancelShare: (() => void) | undefined
  #cancelProof: (() => void) | undefined
  #stopped = false

  constructor(context: Context, key: string) {
    this.#context = context
    this.#key = key
  }

  /**
   * What it appended shows that the journal has all of it, for that was committed last. What was there before may be much older, and in a
   * copy of the database that lacks the rest.
   */
  noteAppend(filed: readonly Filed[], verdicts: readonly Verdict[]): void {
    const appended = filed[verdicts.findLastIndex(({ type }) => type === 'appended')]
    if (appended) this.#noteAppended(appended.ref, appended.entry)
    const there = filed[verdicts.findLastIndex(({ type }) => type === 'there')]
    if (there) this.noteFound(there.ref, there.entry)
  }

  #noteAppended(ref: string, { epoch, seq, hash }: Omit<Witness, 'ref'>): void {
    this.#appended[this.#appends % KEPT] = { ref, epoch, seq, hash }
    this.#appends += 1
    this.#shareSoon()
  }

  /**
   * This was found to be in the journal, for who knows how long: it does not take the place of what was appended by us, which is later. Whoever
   * is told yes because of it counts on it all the same.
   */
  noteFound(ref: string, { epoch, seq, hash }: Omit<Witness, 'ref'>): void {
    this.#found[this.#finds % KEPT] = { ref, epoch, seq, hash }
    this.#finds += 1
    if (this.#appends === 0) this.#shareSoon()
  }

  #shareSoon(): void {
    if (this.#cancelShare || this.#stopped) return
    const { clock, options } = this.#context
    this.#cancelShare = clock.after(
      options.witnessEveryMs,
      () => {
        this.#cancelShare = undefined
        // What was noted since goes along: it is the latest that counts.
        void this.#share()
      },
      true,
    )
  }

  /** Asks the database whether all is there, now and then: it may have been put back under connections that live on. */
  start(prove: () => Promise<unknown>): void {
    const { clock, options } = this.#context
    if (this.#stopped) return
    this.#cancelProof = clock.after(
      options.proveEveryMs * (0.5 + clock.random()),
      () => {
        prove()
          .catch((error) => this.#context.postgres.failedWith(error))
          .finally(() => this.start(prove))
      },
      true,
    )
  }

  /** What is known here and nowhere else is told before it is forgotten. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancelShare?.()
    this.#cancelProof?.()
    await this.#share()
  }

  /**
   * Asks `via` how the database stands. If something is missing it is stopped, for everybody. Resolves when it is fit to be decided on;
   * `reconcile_required` when it is not.
   */
  async prove(via: Pick<Journal, 'prove' | 'stop'>): Promise<Standing> {
    const standing = await via.prove([...this.#appended, ...this.#found, ...(await this.#share(true))])
    const { missing } = standing
    if (missing.length === 0) return standing
    // Also when it is stopped already: the floor has to come to lie above everything that anybody misses.
    const because = await this.#stopFor(via, missing, standing.stopped === null)
    return { ...standing, stopped: standing.stopped ?? { at: 0, because } }
  }

  /** The state of a wallet in Redis says that this is in the journal, and it is not. */
  async accuse(via: Pick<Journal, 'prove' | 'stop'>, witness: Witness): Promise<void> {
    const { missing } = await via.prove([witness])
    if (missing.length === 0) return
    const because = await this.#stopFor(via, missing, true)
    throw new HoldfastError('reconcile_required', undefined, { because })
  }

  async #stopFor(via: Pick<Journal, 'stop'>, missing: readonly Witness[], isNew: boolean): Promise<string> {
    const { ref, seq, hash } = missing[0] as Witness
    const because = `entry ${seq} of wallet ${ref} (${hash}) was acknowledged and is missing`
    await via.stop(Math.max(...missing.map(({ epoch }) => epoch)), because)
    if (!isNew) return because
    this.#context.telemetry.count?.('holdfast_recoveries_total', { what: 'stop' })
    this.#context.telemetry.log?.('error', 'journal_lacks_entries', { because })
    return because
  }

  /** Tells Redis what is new, and hears what others have told it. While Redis is away this process goes by what it knows itself. */
  async #share(ask = false): Promise<Witness[]> {
    const { sequencer, asker } = this.#context
    const latest = this.#appended[(this.#appends - 1) % KEPT] ?? this.#found[(this.#finds - 1) % KEPT]
    const number = this.#appends + this.#finds
    const fresh = number > this.#shared && latest ? latest : null
    if (!fresh && !ask) return []
    try {
      const known = await sequencer.shareWitness(this.#key, asker, fresh && { number, known: fresh })
      if (fresh) this.#shared = Math.max(this.#shared, number)
      return known
    } catch (error) {
      this.#context.telemetry.log?.('debug', 'witness_not_shared', { reason: String(error) })
      return []
    }
  }
}
