import { type HeldStore, type HeldTerms, Lease } from '../../lock/index.js'

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
  readonly #actions: MarkerActions
  #end: (owner: string) => Promise<boolean>

  constructor(actions: MarkerActions, owner: string, until: number, terms: HeldTerms, held: Set<Lease>) {
    this.#actions = actions
    this.#end = (who) => actions.fail(who)
    this.#lease = new Lease({ store: this, owner, token: 0, until }, terms, held, undefined)
  }

  /** Fires when somebody else may load, or when it has taken too long. */
  get signal(): AbortSignal {
    return this.#lease.signal
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
