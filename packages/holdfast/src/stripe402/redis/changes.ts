import { HoldfastError } from '../../errors/index.js'
import type { BorrowedRedis } from '../../redis/index.js'
import { stripe402Change, stripe402ChangeOnce } from '../../redis/scripts.generated.js'
import { clientDamaged, clientNotFound, conflict, tooMuch } from '../failures.js'
import { EXPECTED_BALANCE } from './records.js'

/** A change of a balance that waits for its answer. */
export interface Change {
  readonly clientId: string
  readonly clientKey: string
  readonly amount: number
  /** `+n` or `-n`: the sign also tells adding nothing from deducting nothing. */
  readonly signed: string
  /** Where its idempotency key is remembered; empty: it has none. */
  readonly memoryKey: string
}

interface Waiting extends Change {
  readonly resolve: (balance: number | null) => void
  readonly reject: (error: unknown) => void
}

/**
 * Most changes a call: while a script runs, the server serves nobody else. And with all of 64 callers in one call, Node and Redis would take
 * turns: as fast as the published way 1.1 times, in calls of 32 2.0, of 24 1.7 times (`npm run bench -- stripe402 --quick`).
 */
const CALL_MAX = 32

/**
 * Changes of balances. Those of one turn of the event loop go as one script call, not one each, and those of one client in it read and
 * write its hash once; each is decided by itself and gets an answer of its own. On a Cluster a call can't leave its slot, so there it is
 * one call a client. Who is alone does not wait for company: a call leaves at the end of the turn that it was made in.
 */
export class Changes {
  readonly #redis: BorrowedRedis
  readonly #keyTtlMs: number
  #waiting: Waiting[] = []
  readonly #send = () => this.#sendAll()

  constructor(redis: BorrowedRedis, keyTtlMs: number) {
    this.#redis = redis
    this.#keyTtlMs = keyTtlMs
  }

  /** The balance after; null: there is not enough for a deduction, or it is of nobody. */
  add({ clientId, clientKey, amount, signed, memoryKey }: Change): Promise<number | null> {
    return new Promise((resolve, reject) => {
      // Comes after the microtasks: callers that were answered together ask together again.
      if (this.#waiting.length === 0) process.nextTick(this.#send)
      this.#waiting.push({ clientId, clientKey, amount, signed, memoryKey, resolve, reject })
    })
  }

  #sendAll(): void {
    const waiting = this.#waiting
    this.#waiting = []
    const plain = waiting.filter(({ memoryKey }) => memoryKey === '')
    for (const changes of this.#calls(plain)) this.#change(changes)
    if (plain.length === waiting.length) return
    for (const changes of this.#calls(waiting.filter(({ memoryKey }) => memoryKey !== ''))) this.#changeOnce(changes)
  }

  /** What goes together, client by client. */
  #calls(changes: Waiting[]): Waiting[][] {
    if (changes.length < 2) return changes.length === 0 ? [] : [changes]
    const byClient = new Map<string, Waiting[]>()
    for (const change of changes) {
      const others = byClient.get(change.clientKey)
      if (others === undefined) byClient.set(change.clientKey, [change])
      else others.push(change)
    }
    const groups = this.#redis.isCluster ? [...byClient.values()] : [[...byClient.values()].flat()]
    return groups.flatMap(portions)
  }

  #change(changes: readonly Waiting[]): void {
    const keys: string[] = []
    const args: (string | number)[] = [changes.length, new Date().toISOString()]
    for (let at = 0; at < changes.length; ) {
      const { clientKey, signed } = changes[at] as Waiting
      let end = at + 1
      while (changes[end]?.clientKey === clientKey) end += 1
      keys.push(clientKey)
      if (end === at + 1) args.push(signed)
      else args.push(`*${end - at}`, ...changes.slice(at, end).map((one) => one.signed))
      at = end
    }
    answer(changes, this.#redis.run(stripe402Change, keys, args))
  }

  #changeOnce(changes: readonly Waiting[]): void {
    const keys = changes.flatMap(({ clientKey, memoryKey }) => [clientKey, memoryKey])
    const args = [changes.length, new Date().toISOString(), this.#keyTtlMs, ...changes.map(({ signed }) => signed)]
    answer(changes, this.#redis.run(stripe402ChangeOnce, keys, args))
  }
}

function portions(changes: Waiting[]): Waiting[][] {
  if (changes.length <= CALL_MAX) return [changes]
  const calls: Waiting[][] = []
  for (let from = 0; from < changes.length; from += CALL_MAX) calls.push(changes.slice(from, from + CALL_MAX))
  return calls
}

function answer(changes: readonly Waiting[], reply: Promise<unknown>): void {
  reply.then(
    (text) => {
      const answers = String(text).split(' ')
      for (let at = 0; at < changes.length; at += 1) answerOne(changes[at] as Waiting, answers[at] as string)
    },
    (error: unknown) => {
      for (const { reject } of changes) reject(error)
    },
  )
}

function answerOne({ clientId, amount, signed, resolve, reject }: Waiting, text: string): void {
  if (isBalance(text)) resolve(Number(text))
  // As published: of somebody unknown nothing can be deducted either.
  else if (text === 'short' || (text === 'unknown' && signed.startsWith('-'))) resolve(null)
  else reject(refusal(text, clientId, amount))
}

/** Whether a script has answered with a balance, and not with why there is none. */
export const isBalance = (text: string): boolean => /^-?\d+$/.test(text)

const REFUSALS: Readonly<Record<string, (clientId: string, amount: number) => HoldfastError>> = {
  unknown: (clientId) => clientNotFound(clientId),
  over: (_, amount) => tooMuch(amount),
  conflict: () => conflict('key'),
  type: (clientId) => clientDamaged(clientId, 'its key', 'a hash', 'another type'),
  balance: (clientId) =>
    clientDamaged(clientId, 'balance', EXPECTED_BALANCE, 'a fraction, a larger number, other text or nothing'),
  transaction: (clientId) => clientDamaged(clientId, 'the key of the transaction', 'a string', 'another type'),
  index: (clientId) => clientDamaged(clientId, 'the index of its transactions', 'a sorted set', 'another type'),
  pending: (clientId) => clientDamaged(clientId, 'what is to be filed of it', 'a hash', 'another type'),
  memory: (clientId) => clientDamaged(clientId, 'what its key remembers', 'a change and a balance', 'something else'),
}

/** Why a script refused, as an error of the table. */
export function refusal(why: string, clientId: string, amount: number): HoldfastError {
  return REFUSALS[why]?.(clientId, amount) ?? new HoldfastError('internal_error', `a script answered ${why}`)
}
