import { integer, namesOf, options as optionsOf } from '../input/index.js'
import { keyTtl } from '../redis/scripts.generated.js'
import type { Context } from './context.js'
import { connected, durationMs, keysOf, PURPOSES, type Purpose, readPurpose, TIMER_MAX_MS, word } from './keys.js'
import { inLanes } from './lanes.js'
import type { Primitives } from './primitives.js'

export interface KeySamplerOptions {
  /** How long it rests between two steps: up to a day. Default 10 s. */
  readonly everyMs?: number
  /** How many keys it looks at in a step, whoever's they are. Default 5,000: some 5 ms of the server's time in portions of 500. */
  readonly keysPerStep?: number
  /** Whose keys it counts. Default: of all owners that share this Redis. */
  readonly owner?: string
}

const OPTION_NAMES = namesOf<KeySamplerOptions>({ everyMs: true, keysPerStep: true, owner: true })

/** What a walk over all keys has found, by primitive. */
export interface KeySample {
  /** How many keys it has. One that came or went meanwhile may be counted or not; one may be counted twice. */
  readonly keys: Partial<Record<Purpose, number>>
  /** How many of them should have an end and have none: somebody else has made or changed them. */
  readonly ttlMissing: Partial<Record<Purpose, number>>
}

const PORTION_MAX = 500
/** Keys of a call, for which all must lie in one slot on a Cluster. */
const CALL_MAX = 64
/** Calls at a time: on a Cluster there is one for each key, and they should not take the room of those that somebody waits for. */
const LANES = 8
const NO_END = -1

/**
 * Counts keys by primitive, and those without an end that should have one, by walking over all keys of Redis (SCAN). It goes in small steps
 * with rests between them, so that its cost is bounded however many keys there are: with 5,000 keys each 10 s a million takes 33 minutes.
 * One process is enough for all applications that share a Redis.
 */
export class KeySampler {
  readonly #context: Context
  readonly #everyMs: number
  readonly #portion: number
  readonly #portions: number
  readonly #owner: string | null
  readonly #takeBack: (() => void)[] = []
  #walk: AsyncGenerator<KeySample | null> | undefined
  #timer: NodeJS.Timeout | undefined
  #last: KeySample | null = null

  constructor({ context }: Primitives, options: KeySamplerOptions = {}) {
    const { everyMs = 10_000, keysPerStep = 5_000, owner } = optionsOf('options', options, OPTION_NAMES)
    this.#context = connected(context)
    this.#everyMs = durationMs('everyMs', everyMs, 10, TIMER_MAX_MS)
    const keys = integer('keysPerStep', keysPerStep, 1, 1_000_000)
    this.#portion = Math.min(keys, PORTION_MAX)
    this.#portions = Math.ceil(keys / this.#portion)
    this.#owner = owner === undefined ? null : word('owner', owner)
  }

  /** Of the last walk that was finished. */
  get last(): KeySample | null {
    return this.#last
  }

  /** Walks on by itself from now, until it is stopped. */
  start(): void {
    if (this.#timer !== undefined) return
    for (const purpose of Object.keys(PURPOSES) as Purpose[]) {
      const labels = { primitive: purpose }
      for (const takeBack of [
        this.#context.telemetry.gauge?.('holdfast_primitive_keys', () => this.#last?.keys[purpose] ?? 0, labels),
        this.#context.telemetry.gauge?.(
          'holdfast_primitive_ttl_missing',
          () => this.#last?.ttlMissing[purpose] ?? 0,
          labels,
        ),
      ]) {
        if (takeBack) this.#takeBack.push(takeBack)
      }
    }
    this.#rest()
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#walk = undefined
    for (const takeBack of this.#takeBack.splice(0)) takeBack()
  }

  /** One step of the walk. The sample, if that was its last one; null: there is more to come. */
  async step(): Promise<KeySample | null> {
    this.#walk ??= this.#begin()
    try {
      const { value, done } = await this.#walk.next()
      if (done || value) this.#walk = undefined
      if (value) this.#last = value
      return value ?? null
    } catch (error) {
      this.#walk = undefined
      throw error
    }
  }

  #rest(): void {
    this.#timer = setTimeout(async () => {
      const { closing, telemetry } = this.#context
      const timer = this.#timer
      // Redis is away, or a connection broke in the middle: the next step begins a new walk.
      await this.step().catch((error) => {
        if (!closing.aborted) telemetry.log?.('warn', 'key_sample_failed', { reason: String(error) })
      })
      if (closing.aborted) this.stop()
      if (this.#timer === timer) this.#rest()
    }, this.#everyMs)
    this.#timer.unref()
  }

  async *#begin(): AsyncGenerator<KeySample | null> {
    const keys: Partial<Record<Purpose, number>> = {}
    const ttlMissing: Partial<Record<Purpose, number>> = {}
    let portions = 0
    for await (const found of this.#context.scan(keysOf(this.#owner), this.#portion)) {
      const read = found.map((key) => ({ key, purpose: readPurpose(key) }))
      const ours = read.filter((one): one is { key: string; purpose: Purpose } => one.purpose !== null)
      for (const { purpose } of ours) keys[purpose] = (keys[purpose] ?? 0) + 1
      for (const purpose of await this.#endless(ours)) ttlMissing[purpose] = (ttlMissing[purpose] ?? 0) + 1
      portions += 1
      if (portions % this.#portions === 0) yield null
    }
    yield { keys, ttlMissing }
  }

  /** Of which primitive each is that has no end though it should. */
  async #endless(found: readonly { key: string; purpose: Purpose }[]): Promise<Purpose[]> {
    const asked = found.filter(({ purpose }) => PURPOSES[purpose].expires)
    const size = this.#context.isCluster ? 1 : CALL_MAX
    const parts = Array.from({ length: Math.ceil(asked.length / size) }, (_, n) =>
      asked.slice(n * size, (n + 1) * size),
    )
    const endless: Purpose[] = []
    await inLanes(parts, LANES, async (part) => {
      endless.push(...(await this.#endlessOf(part)))
    })
    return endless
  }

  async #endlessOf(part: readonly { key: string; purpose: Purpose }[]): Promise<Purpose[]> {
    const ttls = (await this.#context.runner.run(
      keyTtl,
      part.map(({ key }) => key),
      [part.length],
    )) as number[]
    return part.filter((_, at) => ttls[at] === NO_END).map(({ purpose }) => purpose)
  }
}
