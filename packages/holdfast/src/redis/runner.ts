import { setTimeout as sleep } from 'node:timers/promises'
import { type Backoff, backoffMs } from './backoff.js'
import type { Client } from './client.js'
import type { RedisConnection } from './connection.js'
import { type Outcome, RedisUnavailable, ScriptError } from './outcome.js'
import { classify, type Failure } from './refusal.js'
import type { Script } from './script.js'
import { type ScriptArg, ScriptCommand } from './script-command.js'

/** Runs scripts. All that the engine asks of Redis, so that a simulator can stand in for it. */
export interface ScriptRunner {
  /**
   * Resolves with the script's reply: buffers, integers, null and arrays of them. Rejects with `RedisUnavailable`, whose
   * `outcome` tells whether the script may have run, or with `ScriptError` when it broke.
   */
  run(script: Script, keys: readonly string[], args: readonly ScriptArg[]): Promise<unknown>
}

export interface RunnerOptions {
  /** Calls under way or waiting at one time. Beyond that they are refused: a queue that only grows helps nobody. */
  readonly callsMax?: number
}

const CALLS_MAX = 1_024
const RETRIES_MAX = 3
const RETRY: Backoff = { baseMs: 25, capMs: 400 }

/**
 * Runs scripts on Redis, each at most once unless its contract says that it may be sent again. What `RedisConnection`
 * guarantees (nothing is resent by the client) makes that true.
 *
 *   reply                       → the result
 *   NOSCRIPT                    → the same again with the source: after SCRIPT FLUSH, a failover, a slot that moved
 *   MOVED, LOADING, READONLY …  → nothing ran: again, three times, within the timeout; then `not_executed`
 *   no right to a command       → never again by itself: `not_executed` if it is EVALSHA, `unknown` if it is one inside of the script
 *   connection lost, no answer  → `@resend safe`: again, three times, within the timeout; else `unknown` at once
 */
export class RedisScriptRunner implements ScriptRunner {
  readonly #connection: RedisConnection
  readonly #callsMax: number
  readonly #takeBack: (() => void)[] = []
  #calls = 0
  #inFlight = 0

  constructor(connection: RedisConnection, options: RunnerOptions = {}) {
    this.#connection = connection
    this.#callsMax = options.callsMax ?? CALLS_MAX
    const { telemetry } = connection
    for (const takeBack of [
      telemetry.gauge?.('redis_commands_in_flight', () => this.#inFlight),
      telemetry.gauge?.('redis_command_queue_length', () => this.#calls - this.#inFlight),
    ]) {
      if (takeBack !== undefined) this.#takeBack.push(takeBack)
    }
  }

  async run(script: Script, keys: readonly string[], args: readonly ScriptArg[]): Promise<unknown> {
    checkCall(script, keys, args)
    if (this.#calls >= this.#callsMax) {
      throw new RedisUnavailable('not_executed', `${this.#calls} Redis calls are under way, the most allowed`, {
        limit: this.#callsMax,
      })
    }
    this.#calls += 1
    const startedAt = performance.now()
    let outcome = 'ok'
    try {
      return await this.#persist(script, keys, args, startedAt + this.#connection.commandTimeoutMs)
    } catch (error) {
      outcome = error instanceof RedisUnavailable ? error.outcome : 'error'
      throw error
    } finally {
      this.#calls -= 1
      this.#connection.telemetry.observe?.('redis_command_duration_seconds', (performance.now() - startedAt) / 1_000, {
        command: script.name,
        outcome,
      })
    }
  }

  /** Takes the gauges back. The connection is closed by whoever made it. */
  close(): void {
    for (const takeBack of this.#takeBack.splice(0)) takeBack()
  }

  async #persist(
    script: Script,
    keys: readonly string[],
    args: readonly ScriptArg[],
    deadline: number,
  ): Promise<unknown> {
    const { telemetry } = this.#connection
    let outcome: Outcome = 'not_executed'
    let bySource = false
    for (let retry = 1; ; retry += 1) {
      const client = this.#connection.take() ?? (await this.#waitForClient(script, deadline, outcome))
      const command = new ScriptCommand(script, bySource, keys, args)
      const failure = await this.#send(client, command, deadline)
      if (failure === undefined) return command.promise

      if (failure.kind === 'broken') throw new ScriptError(script.name, failure.reason)
      if (failure.kind === 'refused' && failure.code === 'NOSCRIPT' && !bySource) {
        telemetry.count?.('redis_script_loads_total', { command: script.name })
        bySource = true
        continue
      }
      if (failure.kind === 'lost' || failure.kind === 'forbidden') outcome = 'unknown'
      const waitMs = backoffMs(retry, RETRY)
      if (retry > RETRIES_MAX || !mayRetry(script, failure) || performance.now() + waitMs >= deadline) {
        throw this.#unavailable(script, outcome, failure)
      }
      telemetry.count?.('redis_retries_total', {
        reason: failure.kind === 'refused' ? failure.code.toLowerCase() : failure.kind,
      })
      await sleep(waitMs)
    }
  }

  /** `undefined` when the reply is there: in `command.promise`, so that the usual case makes no object of its own. */
  async #send(client: Client, command: ScriptCommand, deadline: number): Promise<Failure | undefined> {
    this.#inFlight += 1
    try {
      command.setTimeout(Math.max(1, deadline - performance.now()))
      client.sendCommand(command)
      await command.promise
      return undefined
    } catch (error) {
      return classify(error as Error, command.sent, this.#connection.commandTimeoutMs)
    } finally {
      this.#inFlight -= 1
    }
  }

  async #waitForClient(script: Script, deadline: number, outcome: Outcome): Promise<Client> {
    const enough = new AbortController()
    try {
      const waited = sleep(Math.max(1, deadline - performance.now()), undefined, { signal: enough.signal })
      await Promise.race([this.#connection.ready(), waited])
      const client = this.#connection.take()
      if (client !== undefined) return client
    } catch (error) {
      if (outcome === 'not_executed' || !(error instanceof RedisUnavailable)) throw error
      throw this.#unavailable(script, outcome, { kind: 'unsent', reason: error.message })
    } finally {
      enough.abort()
    }
    const reason = `no connection within ${this.#connection.commandTimeoutMs} ms`
    throw this.#unavailable(script, outcome, { kind: 'unsent', reason })
  }

  #unavailable(script: Script, outcome: Outcome, failure: Failure): RedisUnavailable {
    const ran = outcome === 'unknown' ? 'it may have run' : 'it did not run'
    return new RedisUnavailable(
      outcome,
      `${script.name} on Redis at ${this.#connection.address}: ${failure.reason}; ${ran}`,
      isLasting(failure) ? { refused: failure.code } : {},
    )
  }
}

/** Moments change nothing about it. */
function isLasting(failure: Failure): failure is Failure & { readonly code: string } {
  return failure.kind === 'forbidden' || (failure.kind === 'refused' && !failure.again)
}

function mayRetry(script: Script, failure: Failure): boolean {
  if (failure.kind === 'lost') return script.resend === 'safe'
  return failure.kind === 'unsent' || (failure.kind === 'refused' && failure.again)
}

/** A call against the script's contract is a bug of ours: it is stopped before it is sent. */
export function checkCall(script: Script, keys: readonly string[], args: readonly ScriptArg[]): void {
  const { min, variable } = script.keys
  if (variable ? keys.length < min : keys.length !== min) {
    throw new RangeError(
      `script ${script.name}: expected ${variable ? 'at least ' : ''}${min} keys, got ${keys.length}`,
    )
  }
  if (script.batchMax === null) return
  const count = Number(args[script.batchArg - 1])
  if (!Number.isInteger(count) || count < 0 || count > script.batchMax) {
    throw new RangeError(
      `script ${script.name}: expected at most ${script.batchMax} commands in ARGV[${script.batchArg}], got ${count}`,
    )
  }
}
