import { Cluster } from 'ioredis'
import { HoldfastError } from '../errors/index.js'
import type { Telemetry } from '../telemetry/index.js'
import { addressOf, type Client, type RedisTarget, template } from './client.js'
import { RIGHTS_KEY } from './keys.js'
import { Link, type LinkState } from './link.js'
import { RedisUnavailable } from './outcome.js'
import { classify, FORBIDDEN } from './refusal.js'
import { ScriptCommand } from './script-command.js'
import { redisProbe } from './scripts.generated.js'
import { walkKeys } from './walk.js'

export interface ConnectionOptions {
  /**
   * Connections a process makes (with Cluster: to each node), 1 to 64. Default 1.
   *
   * One, because Redis serves all connections from one thread and a pipelined one keeps it busy: 256 callers got 101k script
   * calls/s over one connection, 104k over two, 84k over four and 66k over eight, with everything on two cores. More are of
   * use where single replies are large, or where the way to Redis is long and lossy.
   */
  readonly connections?: number
  /** A call that has no answer by then is rejected. The server may still run it. Default 2,000. */
  readonly commandTimeoutMs?: number
  /** How long an attempt to connect may take. Default 2,000. */
  readonly connectTimeoutMs?: number
  readonly telemetry?: Telemetry
}

const CONNECTIONS_MAX = 64
const TIMEOUT_MAX_MS = 600_000
const STATES: readonly LinkState[] = ['connecting', 'ready', 'away', 'closed']

/**
 * All connections of a process to one Redis: single, Sentinel, Cluster, or like a client that was brought (which is never
 * used itself, nor closed). Connecting begins at once and never ends: without Redis there is still Postgres.
 */
export class RedisConnection {
  /** Hosts and ports, without credentials. */
  readonly address: string
  /** Keys of one call must then lie in one slot. */
  readonly isCluster: boolean
  readonly commandTimeoutMs: number
  readonly telemetry: Telemetry
  readonly #links: readonly Link[]
  readonly #takeBack: (() => void)[] = []
  #turn = 0

  constructor(target: RedisTarget, options: ConnectionOptions = {}) {
    const connections = integer('connections', options.connections ?? 1, CONNECTIONS_MAX)
    const connectTimeoutMs = integer('connectTimeoutMs', options.connectTimeoutMs ?? 2_000, TIMEOUT_MAX_MS)
    this.commandTimeoutMs = integer('commandTimeoutMs', options.commandTimeoutMs ?? 2_000, TIMEOUT_MAX_MS)
    this.telemetry = options.telemetry ?? {}
    const from = template(target)
    this.address = addressOf(from)
    this.isCluster = from instanceof Cluster
    const settings = { commandTimeoutMs: this.commandTimeoutMs, connectTimeoutMs }
    this.#links = Array.from({ length: connections }, () => new Link(from, settings, this.telemetry))
    for (const state of STATES) {
      const read = () => this.#links.filter((link) => link.state === state).length
      const takeBack = this.telemetry.gauge?.('redis_connections', read, { state })
      if (takeBack !== undefined) this.#takeBack.push(takeBack)
    }
  }

  /** A client that can be used now, each in its turn; `undefined` while there is none. */
  take(): Client | undefined {
    const links = this.#links
    for (let tried = 0; tried < links.length; tried += 1) {
      this.#turn = (this.#turn + 1) % links.length
      const client = (links[this.#turn] as Link).client
      if (client.status === 'ready') return client
    }
    return undefined
  }

  /** Is there a client to take? */
  get isThere(): boolean {
    return this.#links.some(({ client }) => client.status === 'ready')
  }

  /** Resolves once there is a client to take; rejects with `unavailable` when three retries have failed. */
  async ready(): Promise<void> {
    try {
      await Promise.any(this.#links.map((link) => link.ready()))
    } catch (error) {
      throw (error as AggregateError).errors[0]
    }
  }

  /** One round trip, with Cluster to every master. */
  async ping(): Promise<void> {
    await this.ready()
    const client = this.take()
    try {
      const nodes = client instanceof Cluster ? client.nodes('master') : [client]
      await Promise.all(nodes.map((node) => node?.ping()))
    } catch (error) {
      // Not as the `cause`: errors of ioredis carry the command with its arguments.
      throw new RedisUnavailable('unknown', `Redis at ${this.address} does not answer: ${(error as Error).message}`)
    }
  }

  /** What each master says of itself (null: it does not let us ask), and when it writes snapshots, where it lets us see that. */
  async describe(): Promise<{ info: string | null; save: string | null }[]> {
    await this.ready()
    const client = this.take()
    const nodes = client instanceof Cluster ? client.nodes('master') : client ? [client] : []
    try {
      return await Promise.all(
        nodes.map(async (node) => {
          const [, save = null] = (await node.config('GET', 'save').catch(() => [])) as string[]
          const info = await node.info().catch((error: Error) => {
            if (this.#forbids(error)) return null
            throw error
          })
          return { info, save }
        }),
      )
    } catch (error) {
      throw new RedisUnavailable('unknown', `Redis at ${this.address} does not answer: ${(error as Error).message}`)
    }
  }

  /** What keeps us from what scripts do, where the server does not let us; null: it does, or can't say so now. */
  async forbidden(): Promise<string | null> {
    await this.ready()
    const client = this.take()
    if (client === undefined) return null
    // By its source first, which makes it known: both are needed.
    for (const bySource of [true, false]) {
      const command = new ScriptCommand(redisProbe, bySource, [RIGHTS_KEY], [])
      command.setTimeout(this.commandTimeoutMs)
      client.sendCommand(command)
      const said = await command.promise.then(
        () => null,
        (error: Error) => (this.#forbids(error) ? whatIsForbidden(error.message) : null),
      )
      if (said !== null) return said
    }
    return null
  }

  #forbids(error: Error): boolean {
    const failure = classify(error, true, this.commandTimeoutMs)
    return 'code' in failure && failure.code === FORBIDDEN
  }

  /** Keys like this, in portions, of every master: see `walkKeys`. */
  async *scan(pattern: string, portion: number): AsyncGenerator<string[]> {
    await this.ready()
    const client = this.take()
    const masters = client instanceof Cluster ? client.nodes('master') : client ? [client] : []
    yield* walkKeys(masters, { pattern, portion }, async (node, command) => {
      try {
        node.sendCommand(command)
        return await command.promise
      } catch (error) {
        throw new RedisUnavailable('unknown', `Redis at ${this.address} does not answer: ${(error as Error).message}`)
      }
    })
  }

  async close(): Promise<void> {
    for (const takeBack of this.#takeBack.splice(0)) takeBack()
    await Promise.all(this.#links.map((link) => link.close()))
  }
}

/** Redis 7.0 does not say which command of the script it was, but in which line. */
function whatIsForbidden(said: string): string {
  const line = redisProbe.source.split('\n')[Number(/@user_script:(\d+)\.$/.exec(said)?.[1]) - 1]
  const command = /redis\.call\('(\w+)'/.exec(line ?? '')?.[1]
  return command === undefined ? said : `${command} is refused`
}

function integer(name: string, value: number, max: number): number {
  if (Number.isInteger(value) && value >= 1 && value <= max) return value
  const argument = `redis ${name}`
  const message = `${argument}: expected an integer from 1 to ${max}, got ${value}`
  throw new HoldfastError('invalid_argument', message, { argument })
}
