import { HoldfastError } from '../../errors/index.js'
import type { BorrowedRedis } from '../../redis/index.js'
import { stripe402Change, stripe402ChangeOnce } from '../../redis/scripts.generated.js'
import { clientDamaged, clientNotFound, conflict, tooMuch } from '../failures.js'
import { EXPECTED_BALANCE } from './records.js'

/** A change of a balance that waits for its answer. */
interface Change {
  readonly clientKey: string
  /** `+n` or `-n`: the sign also tells adding nothing from deducting nothing. */
  readonly signed: string
  /** Where its idempotency key is remembered; empty: it has none. */
  readonly memoryKey: string
  readonly resolve: (answer: string) => void
  readonly reject: (error: unknown) => void
}

/** Most changes a call: while a script runs, the server serves nobody else. */
const CALL_MAX = 64

/**
 * Changes of balances. Those of one turn of the event loop go as one script call, not one each, and those of one client in it read and
 * write its hash once; each is decided by itself and gets an answer of its own. On a Cluster a call can't leave its slot, so there it is
 * one call a client. Who is alone does not wait for company: a call leaves at the end of the turn that it was made in.
 */
export class Changes {
  readonly #redis: BorrowedRedis
  readonly #keyTtlMs: number
  #waiting: Change[] = []

  constructor(redis: BorrowedRedis, keyTtlMs: number) {
    this.#redis = redis
    this.#keyTtlMs = keyTtlMs
  }

  /** The balance after in digits, or why there is none, in the words of the scripts. */
  add(clientKey: string, signed: string, memoryKey: string): Promise<string> {
    return new Promise((resolve, reject) => {
      // Comes after the microtasks: callers that were answered together ask together again.
      if (this.#waiting.length === 0) process.nextTick(() => this.#send())
      this.#waiting.push({ clientKey, signed, memoryKey, resolve, reject })
    })
  }

  #send(): void {
    const waiting = this.#waiting
    this.#waiting = []
    const plain = waiting.filter(({ memoryKey }) => memoryKey === '')
    const once = plain.length === waiting.length ? [] : waiting.filter(({ memoryKey }) => memoryKey !== '')
    for (const changes of this.#calls(plain)) void this.#change(changes)
    for (const changes of this.#calls(once)) void this.#changeOnce(changes)
  }

  /** What goes together, client by client. */
  #calls(changes: readonly Change[]): Change[][] {
    if (changes.length < 2) return changes.length === 0 ? [] : [[...changes]]
    const byClient = new Map<string, Change[]>()
    for (const change of changes) {
      const others = byClient.get(change.clientKey)
      if (others === undefined) byClient.set(change.clientKey, [change])
      else others.push(change)
    }
    const groups = this.#redis.isCluster ? [...byClient.values()] : [[...byClient.values()].flat()]
    return groups.flatMap(portions)
  }

  async #change(changes: readonly Change[]): Promise<void> {
    const keys: string[] = []
    const args: (string | number)[] = [changes.length, new Date().toISOString()]
    let countAt = 0
    for (const { clientKey, signed } of changes) {
      if (keys.length === 0 || keys[keys.length - 1] !== clientKey) {
        keys.push(clientKey)
        countAt = args.push(0) - 1
      }
      args[countAt] = (args[countAt] as number) + 1
      args.push(signed)
    }
    await answer(changes, this.#redis.run(stripe402Change, keys, args))
  }

  async #changeOnce(changes: readonly Change[]): Promise<void> {
    const keys = changes.flatMap(({ clientKey, memoryKey }) => [clientKey, memoryKey])
    const args = [changes.length, new Date().toISOString(), this.#keyTtlMs, ...changes.map(({ signed }) => signed)]
    await answer(changes, this.#redis.run(stripe402ChangeOnce, keys, args))
  }
}

function portions(changes: Change[]): Change[][] {
  if (changes.length <= CALL_MAX) return [changes]
  const calls: Change[][] = []
  for (let from = 0; from < changes.length; from += CALL_MAX) calls.push(changes.slice(from, from + CALL_MAX))
  return calls
}

async function answer(changes: readonly Change[], reply: Promise<unknown>): Promise<void> {
  try {
    const answers = String(await reply).split(' ')
    for (const [at, { resolve }] of changes.entries()) resolve(answers[at] as string)
  } catch (error) {
    for (const { reject } of changes) reject(error)
  }
}

const REFUSALS: Readonly<Record<string, (clientId: string, amount: number) => HoldfastError>> = {
  unknown: (clientId) => clientNotFound(clientId),
  over: (_, amount) => tooMuch(amount),
  conflict: () => conflict('key'),
  type: (clientId) => clientDamaged(clientId, 'its key', 'a hash', 'another type'),
  balance: (clientId) => clientDamaged(clientId, 'balance', EXPECTED_BALANCE, 'something else, or nothing'),
  transaction: (clientId) => clientDamaged(clientId, 'the key of the transaction', 'a string', 'another type'),
  index: (clientId) => clientDamaged(clientId, 'the index of its transactions', 'a sorted set', 'another type'),
  pending: (clientId) => clientDamaged(clientId, 'what is to be filed of it', 'a hash', 'another type'),
  memory: (clientId) => clientDamaged(clientId, 'what its key remembers', 'a change and a balance', 'something else'),
}

/** Why a script refused, as an error of the table. */
export function refusal(why: string, clientId: string, amount: number): HoldfastError {
  return REFUSALS[why]?.(clientId, amount) ?? new HoldfastError('internal_error', `a script answered ${why}`)
}
