import { HoldfastError } from '../../errors/index.js'
import type { LockStore, Taken } from '../../lock/index.js'
import type { Scope } from '../keys.js'
import type { ServerStore } from './store.js'

export const SERVERS_MIN = 3
export const SERVERS_MAX = 9
/** Who has not answered by then has not voted: waiting longer would use up the time of the lease. */
const answerMs = (ttlMs: number): number => Math.max(50, ttlMs / 10)
/** Giving back uses nothing up. */
const RELEASE_MS = 1_000

/** What a server said; an error; or nothing yet. */
type Vote<T> = { readonly said: T } | { readonly failed: unknown } | undefined

/**
 * One lease on several servers that know nothing of each other: it is had where more than half of them have given it.
 *
 * Tokens of servers: each draws one of its own while it gives the lease, the largest counts, and more than half of the servers are told to
 * go on from there, before the lease is used. Any two majorities have a server in common, so that whoever comes next draws a larger one.
 *
 * One object is for one taking.
 */
export class QuorumStore implements LockStore {
  readonly #servers: readonly ServerStore[]
  readonly #majority: number
  readonly #hasTokens: boolean
  readonly scope: Scope
  #token: number | null = null
  /** Who wants it now; null: nobody any more. */
  #wanted: string | null = null

  constructor(servers: readonly ServerStore[], hasTokens: boolean) {
    this.#servers = servers
    this.scope = (servers[0] as ServerStore).scope
    this.#majority = Math.floor(servers.length / 2) + 1
    this.#hasTokens = hasTokens
  }

  async take(owner: string, ttlMs: number): Promise<Taken> {
    this.#wanted = owner
    const asked = this.#servers.map((server) => this.#takeOne(server, owner, ttlMs))
    const votes = await this.#gather(asked, answerMs(ttlMs), (taken) => !('busyMs' in taken))
    const granted = votes.filter((vote) => vote && 'said' in vote && !('busyMs' in vote.said)).length
    if (granted < this.#majority) {
      this.#giveBack(owner)
      return { busyMs: this.#busyMs(votes) }
    }
    if (!this.#hasTokens) return { token: null }
    const token = Math.max(
      ...votes.map((vote) => (vote && 'said' in vote && 'token' in vote.said ? Number(vote.said.token) : 0)),
    )
    try {
      const raised = this.#servers.map((server) => server.raise(owner, ttlMs, token))
      if (!(await this.#decide(raised, answerMs(ttlMs)))) {
        this.#giveBack(owner)
        return { busyMs: ttlMs }
      }
    } catch (error) {
      this.#giveBack(owner)
      throw error
    }
    this.#token = token
    return { token }
  }

  async renew(owner: string, ttlMs: number): Promise<boolean> {
    const asked = this.#servers.map((server) => server.renew(owner, ttlMs))
    const isHeld = await this.#decide(asked, answerMs(ttlMs))
    // Held by a majority, so nobody else can have it: a server that came back empty may vote for it again.
    if (isHeld) for (const [at, one] of asked.entries()) void this.#mend(one, at, owner, ttlMs).catch(() => {})
    return isHeld
  }

  async release(owner: string): Promise<boolean> {
    this.#wanted = null
    return this.#decide(
      this.#servers.map((server) => server.release(owner)),
      RELEASE_MS,
    )
  }

  /** A server that gives it to who does not want it any more is told so at once. */
  async #takeOne(server: ServerStore, owner: string, ttlMs: number): Promise<Taken> {
    const taken = await server.take(owner, ttlMs)
    if (this.#wanted !== owner && !('busyMs' in taken)) void server.release(owner).catch(() => {})
    return taken
  }

  async #mend(renewed: Promise<boolean>, at: number, owner: string, ttlMs: number): Promise<void> {
    const server = this.#servers[at] as ServerStore
    if ((await renewed) || this.#wanted !== owner) return
    const taken = await this.#takeOne(server, owner, ttlMs)
    if (this.#token !== null && !('busyMs' in taken)) await server.raise(owner, ttlMs, this.#token)
  }

  #giveBack(owner: string): void {
    this.#wanted = null
    for (const server of this.#servers) void server.release(owner).catch(() => {})
  }

  /** Yes or no of a majority. Where neither is to be had, it is `unavailable`. */
  async #decide(asked: readonly Promise<boolean>[], withinMs: number): Promise<boolean> {
    const votes = await this.#gather(asked, withinMs, (yes) => yes)
    const said = (what: boolean) => votes.filter((vote) => vote && 'said' in vote && vote.said === what).length
    if (said(true) >= this.#majority) return true
    if (said(false) > votes.length - this.#majority) return false
    throw this.#unavailable(votes)
  }

  /** Waits until the votes decide it, all have voted, or those who are silent are too late. */
  #gather<T>(asked: readonly Promise<T>[], withinMs: number, isYes: (said: T) => boolean): Promise<readonly Vote<T>[]> {
    const votes: Vote<T>[] = asked.map(() => undefined)
    return new Promise((resolve) => {
      let waiting = asked.length
      let yes = 0
      const done = () => {
        clearTimeout(timer)
        resolve([...votes])
      }
      const timer = setTimeout(done, withinMs)
      const vote = (at: number, one: Vote<T>) => {
        votes[at] = one
        waiting -= 1
        if (one && 'said' in one && isYes(one.said)) yes += 1
        if (waiting === 0 || yes >= this.#majority || yes + waiting < this.#majority) done()
      }
      for (const [at, one] of asked.entries()) {
        one.then(
          (said) => vote(at, { said }),
          (failed) => vote(at, { failed }),
        )
      }
    })
  }

  /** When a majority will be free at the latest, unless somebody renews: those that we have given back are so now. */
  #busyMs(votes: readonly Vote<Taken>[]): number {
    const free = votes
      .filter((vote): vote is { said: Taken } => vote !== undefined && 'said' in vote)
      .map(({ said }) => ('busyMs' in said ? said.busyMs : 1))
      .sort((a, b) => a - b)
    const busyMs = free[this.#majority - 1]
    if (busyMs === undefined) throw this.#unavailable(votes)
    return busyMs
  }

  #unavailable(votes: readonly Vote<unknown>[]): HoldfastError {
    const failures = votes.map((vote) => (vote && 'failed' in vote ? vote.failed : undefined))
    // Something that is wrong for good is told rather than what may pass.
    const worse = failures.find((failed) => failed !== undefined && !HoldfastError.is(failed, 'unavailable'))
    if (worse) throw worse
    const silent = votes.filter((vote) => vote === undefined || 'failed' in vote).length
    return new HoldfastError(
      'unavailable',
      `${silent} of ${votes.length} Redis servers do not answer, and ${this.#majority} are needed`,
    )
  }
}
