import { HoldfastError } from '../../errors/index.js'
import { integer, invalid, options as optionsOf, show } from '../../input/index.js'
import type { Check } from './schema.js'

/**
 * What an envelope looks like in Redis, for people who look there:
 *
 *   {"schemaVersion":2,"state":"PAID","createdAt":"2026-07-02T10:00:00.000Z","updatedAt":"2026-07-02T10:00:02.000Z","payload":{…}}
 */
export interface Envelope<Payload, State extends string = string> {
  /** Of the payload as it is here: always the newest, also when an older one was read. */
  readonly schemaVersion: number
  readonly state: State
  readonly createdAt: Date
  /** Later with every change, by a millisecond at least: an envelope never comes back to what it was. */
  readonly updatedAt: Date
  readonly payload: Payload
}

/** From the payload of the version that it stands under to that of the next. */
export type Upgrades = Readonly<Record<number, (payload: never) => unknown>>

export interface FormatOptions<Payload> {
  readonly schemaVersion: number
  readonly upgrades: Upgrades
  readonly check: Check<Payload>
  readonly hasState: (name: unknown) => boolean
}

const PAYLOAD = { argument: 'payload' }

/** Why a text is no envelope, or none that can be read here. */
export type Unreadable =
  | { readonly why: 'damaged'; readonly cause?: unknown }
  | { readonly why: 'version'; readonly version: number }

const VERSION_MAX = 1_000_000
const DAMAGED: Unreadable = { why: 'damaged' }

/** Between texts and envelopes. Pure but for what schema and upgrades do. */
export class Format<Payload, State extends string> {
  readonly schemaVersion: number
  /** The oldest version that can be read. */
  readonly oldest: number
  readonly #upgrades: ReadonlyMap<number, (payload: unknown) => unknown>
  readonly #check: Check<Payload>
  readonly #hasState: (name: unknown) => boolean

  constructor({ schemaVersion, upgrades, check, hasState }: FormatOptions<Payload>) {
    this.schemaVersion = integer('schemaVersion', schemaVersion, 1, VERSION_MAX)
    const given = Object.entries(optionsOf('upgrades', upgrades))
    for (const [from, upgrade] of given) {
      if (typeof upgrade !== 'function') throw invalid(`upgrades[${from}]`, 'a function', show(upgrade))
    }
    this.#upgrades = new Map(given.map(([from, upgrade]) => [Number(from), upgrade as (payload: unknown) => unknown]))
    let oldest = this.schemaVersion
    while (oldest > 1 && this.#upgrades.has(oldest - 1)) oldest -= 1
    // One beyond a gap would look as if it were of use.
    if (this.schemaVersion - oldest !== given.length) {
      throw invalid(
        'upgrades',
        `one from each version up to ${this.schemaVersion}`,
        `${given.length}, others or with gaps`,
      )
    }
    this.oldest = oldest
    this.#check = check
    this.#hasState = hasState
  }

  /** The payload is checked as it will be read: what JSON leaves out or changes shows here, and not in another process. */
  async write(envelope: Omit<Envelope<unknown, State>, 'schemaVersion'>): Promise<[string, Envelope<Payload, State>]> {
    const { state, createdAt, updatedAt, payload } = envelope
    const { schemaVersion } = this
    const json = jsonOf(payload)
    const checked = await this.#check(JSON.parse(json)).catch((cause) => {
      throw new HoldfastError('invalid_argument', 'payload: expected what the schema allows, got another', PAYLOAD, {
        cause,
      })
    })
    const head = JSON.stringify({ schemaVersion, state, createdAt, updatedAt })
    return [`${head.slice(0, -1)},"payload":${json}}`, { schemaVersion, state, createdAt, updatedAt, payload: checked }]
  }

  async read(text: string): Promise<Envelope<Payload, State> | Unreadable> {
    const read = parse(text)
    if (read === null) return DAMAGED
    const { schemaVersion: version } = read
    if (!Number.isSafeInteger(version) || (version as number) < 1) return DAMAGED
    // Before all else: what another version looks like is not ours to say.
    if ((version as number) > this.schemaVersion || (version as number) < this.oldest) {
      return { why: 'version', version: version as number }
    }
    const createdAt = instantOf(read.createdAt)
    const updatedAt = instantOf(read.updatedAt)
    if (!createdAt || !updatedAt || !this.#hasState(read.state) || !('payload' in read)) return DAMAGED
    try {
      const payload = await this.#check(this.#upgrade(read.payload, version as number))
      return { schemaVersion: this.schemaVersion, state: read.state as State, createdAt, updatedAt, payload }
    } catch (cause) {
      return { why: 'damaged', cause }
    }
  }

  #upgrade(payload: unknown, from: number): unknown {
    let upgraded = payload
    for (let version = from; version < this.schemaVersion; version += 1) {
      upgraded = this.#upgrades.get(version)?.(upgraded)
    }
    return upgraded
  }
}

export const isUnreadable = (read: object): read is Unreadable => 'why' in read

function jsonOf(payload: unknown): string {
  let json: string | undefined
  try {
    json = JSON.stringify(payload)
  } catch (cause) {
    throw new HoldfastError('invalid_argument', 'payload: expected what JSON can hold, got another', PAYLOAD, { cause })
  }
  if (json === undefined) throw invalid('payload', 'what JSON can hold', show(payload))
  return json
}

function parse(text: string): Record<string, unknown> | null {
  try {
    const read: unknown = JSON.parse(text)
    return typeof read === 'object' && read !== null && !Array.isArray(read) ? (read as Record<string, unknown>) : null
  } catch {
    return null
  }
}

function instantOf(text: unknown): Date | null {
  if (typeof text !== 'string') return null
  const date = new Date(text)
  return !Number.isNaN(date.getTime()) && date.toISOString() === text ? date : null
}
