import { HoldfastError } from '../../errors/index.js'
import { type HeldLeases, type HeldStore, type HeldTerms, Lease, type Loss } from '../../lock/index.js'

export interface MarkerActions {
  renew(owner: string, ttlMs: number): Promise<boolean>
  put(owner: string, text: string, keepMs: number): Promise<boolean>
  fail(owner: string): Promise<boolean>
}

/**
 * The marker of who loads: a lease that is renewed while the load goes on. It ends by what is done with it: a value is put in its place, or
 * a word that nobody should try for a while. Both only if it is still held.
 */
export class Marker implements HeldStore {
  readonly #lease: Lease
  readonly #over = new AbortController()
  readonly #actions: MarkerActions
  #end: (owner: string) => Promise<boolean>

  constructor(actions: MarkerActions, owner: string, until: number, terms: HeldTerms, held: HeldLeases) {
    this.#actions = actions
    this.#end = (who) => actions.fail(who)
    this.#lease = new Lease({ store: this, owner, token: 0, until }, terms, held, undefined)
  }

  /** Fires when it is somebody else's to load, or nobody's any more. */
  get signal(): AbortSignal {
    return this.#over.signal
  }

  /** Told when it is lost. One that could not be renewed is not reason enough to stop: while Redis is away nobody else can have it either. */
  lost(loss: Loss): void {
    if (loss !== 'late') this.#over.abort(new HoldfastError('lock_lost', 'The value is somebody else’s to load by now'))
  }

  /** False: what was loaded is outdated, and was not kept. */
  async put(text: string, keepMs: number): Promise<boolean> {
    this.#end = (owner) => this.#actions.put(owner, text, keepMs)
    return (await this.#lease.release()) === 'released'
  }

  async fail(): Promise<void> {
    await this.#lease.release()
  }

  renew(owner: string, ttlMs: number): Promise<boolean> {
    return this.#actions.renew(owner, ttlMs)
  }

  release(owner: string): Promise<boolean> {
    return this.#end(owner)
  }
}
