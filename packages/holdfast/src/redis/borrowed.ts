import { HoldfastError } from '../errors/index.js'
import { RedisUnavailable } from './outcome.js'
import { classify } from './refusal.js'
import { checkCall, type ScriptRunner } from './runner.js'
import type { Script } from './script.js'
import { type ScriptArg, ScriptCommand } from './script-command.js'
import { PlainCommand, walkKeys } from './walk.js'

/**
 * A client of ioredis that belongs to somebody else: `Redis`, also with Sentinel, or `Cluster`. Told by what is used of it, so that one of
 * another copy or version of ioredis will do.
 */
export interface BorrowedClient {
  readonly isCluster: boolean
  readonly options: { readonly keyPrefix?: string | undefined; readonly commandTimeout?: number | undefined }
  // biome-ignore lint/suspicious/noExplicitAny: each copy of ioredis has a class of commands of its own; they are all alike.
  sendCommand(command: any): unknown
}

/** The key holds something of another type than the command is for. */
export const WRONG_TYPE = Symbol('wrong type')

/**
 * Runs scripts and commands over a client that is not ours: its owner decides how it connects, how long it waits, and closes it. What that
 * owner can't be asked for is that an unanswered call is not sent again, which ioredis does by itself: a script that must not run twice is
 * withdrawn instead.
 */
export class BorrowedRedis implements ScriptRunner {
  readonly isCluster: boolean
  /** What the owner has put before all keys. Commands made here go past that, so that whoever names keys has to add it. */
  readonly keyPrefix: string
  readonly #client: BorrowedClient
  readonly #timeoutMs: number

  constructor(client: BorrowedClient) {
    if (typeof client !== 'object' || client === null || typeof client.sendCommand !== 'function') {
      const message = `redis: expected a client of ioredis, got ${typeof client}`
      throw new HoldfastError('invalid_argument', message, { argument: 'redis' })
    }
    this.#client = client
    this.isCluster = client.isCluster
    this.keyPrefix = client.options.keyPrefix ?? ''
    this.#timeoutMs = client.options.commandTimeout ?? 0
  }

  /**
   * As a runner does, but rejects with errors of the table. `bySource` is for a server that does not know the script. Not `async`: that is
   * a promise more for each call, and a caller alone pays for all of it.
   */
  run(script: Script, keys: readonly string[], args: readonly ScriptArg[], bySource = false): Promise<unknown> {
    checkCall(script, keys, args)
    const Kind = script.resend === 'safe' ? ScriptCommand : SentOnce
    const command = new Kind(script, bySource, keys, args)
    this.#client.sendCommand(command)
    return command.promise.catch((error: Error) => {
      if (!bySource && isReply(error, 'NOSCRIPT')) return this.run(script, keys, args, true)
      throw this.#failureOf(error, script.name, command.sent)
    })
  }

  /** A command that may run twice, with its reply as text. */
  async ask(name: string, ...args: readonly (string | number)[]): Promise<unknown> {
    return this.#ask(this.#client, new PlainCommand(name, args))
  }

  /** Keys like this, in portions, of every master: see `walkKeys`. */
  async *scan(pattern: string, portion: number): AsyncGenerator<string[]> {
    yield* walkKeys(await this.#masters(), { pattern, portion }, (node, command) => this.#ask(node, command))
  }

  async #ask(client: BorrowedClient, command: PlainCommand): Promise<unknown> {
    try {
      client.sendCommand(command)
      return await command.promise
    } catch (error) {
      if (isReply(error, 'WRONGTYPE')) return WRONG_TYPE
      throw this.#failureOf(error as Error, command.name, true)
    }
  }

  async #masters(): Promise<readonly BorrowedClient[]> {
    if (!this.isCluster) return [this.#client]
    // Answered when the Cluster is known.
    await this.ask('ping')
    return (this.#client as unknown as { nodes(role: string): BorrowedClient[] }).nodes('master')
  }

  /** Never with a `cause`: errors of ioredis carry the command with its arguments. */
  #failureOf(error: Error, name: string, sent: boolean): HoldfastError {
    const failure = classify(error, sent, this.#timeoutMs)
    if (failure.kind === 'broken') return new HoldfastError('internal_error', `${name}: ${failure.reason}`)
    const outcome = failure.kind === 'lost' ? 'unknown' : 'not_executed'
    const ran = outcome === 'unknown' ? 'it may have run' : 'it did not run'
    return new RedisUnavailable(outcome, `${name} on Redis: ${failure.reason}; ${ran}`)
  }
}

/** A call that is not sent over a second connection when the first one broke before its answer. */
class SentOnce extends ScriptCommand {
  #socket: { readonly destroyed?: boolean } | undefined

  override toWritable(socket: { readonly destroyed?: boolean }): string | Buffer {
    // Where a redirection brought it here it was answered, on a connection that is most likely still open.
    if (this.#socket?.destroyed) this.reject(new Error('the connection broke before the answer'))
    this.#socket = socket
    return super.toWritable(socket)
  }
}

const isReply = (error: unknown, code: string): boolean =>
  error instanceof Error && error.name === 'ReplyError' && error.message.startsWith(`${code} `)
