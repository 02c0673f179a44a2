import { namesOf, options as optionsOf } from '../../input/index.js'
import { tell } from '../context.js'
import { durationMs, TIMER_MAX_MS } from '../keys.js'
import { type Generation, MARK_BYTES } from './generation.js'
import { chunkOf, offsetsOf, type Spot } from './spot.js'
import type { BloomStore } from './store.js'

export interface BloomMirrorOptions {
  /** How long it rests between two looks at Redis: up to a day. Default 10 s. */
  readonly everyMs?: number
  /** From what age on it is not believed any more, and says `maybe` to everything. Default six times `everyMs`. */
  readonly maxAgeMs?: number
}

const OPTION_NAMES = namesOf<BloomMirrorOptions>({ everyMs: true, maxAgeMs: true })

/**
 * - `absent`: it had not been added at `asOf`, for sure. Somebody else may have added it since.
 * - `maybe`: ask who knows. `bits`: it may be there; `missing`: there is no filter; `stale`: the mirror could not look at Redis for too long.
 */
export type BloomMirrorMembership =
  | { readonly result: 'absent'; readonly asOf: Date }
  | { readonly result: 'maybe'; readonly because: 'bits' | 'missing' | 'stale' }

interface Copy {
  readonly generation: Generation
  /** Chunk after chunk, without their marks. One that is gone in Redis is all ones: it can't tell that something is absent. */
  readonly bits: Uint8Array
  /** By chunk, as they were when it was read; none where it is gone. */
  readonly marks: readonly Buffer[]
}

const MAYBE = { bits: maybe('bits'), missing: maybe('missing'), stale: maybe('stale') } as const

/** A copy of a filter in this process, which answers without asking Redis. What this process adds it knows at once. */
export class BloomMirror {
  readonly everyMs: number
  readonly maxAgeMs: number
  readonly #store: BloomStore
  readonly #spotOf: (item: unknown) => Spot
  #copy: Copy | null = null
  #absent: BloomMirrorMembership | null = null
  /** By the clock of the process, which nobody sets back. */
  #lookedAt = Number.NEGATIVE_INFINITY
  #refreshing: Promise<void> | undefined
  #refreshingNext: Promise<void> | undefined
  #addedMeanwhile: Spot[] = []
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  #answers = { mirror_absent: 0, mirror_maybe: 0 }
  readonly #learn = (spot: Spot): void => {
    // What is being read may be from before.
    if (this.#refreshing) this.#addedMeanwhile.push(spot)
    if (this.#copy) mark(this.#copy, spot)
  }

  constructor(store: BloomStore, spotOf: (item: unknown) => Spot, options: BloomMirrorOptions) {
    const { everyMs = 10_000, maxAgeMs } = optionsOf('options', options, OPTION_NAMES)
    this.everyMs = durationMs('everyMs', everyMs, 10, TIMER_MAX_MS)
    this.maxAgeMs = durationMs('maxAgeMs', maxAgeMs ?? 6 * this.everyMs, this.everyMs)
    this.#store = store
    this.#spotOf = spotOf
    store.learners.add(this.#learn)
    void this.#look()
  }

  mightHave(item: string): BloomMirrorMembership {
    const answer = this.#answer(this.#spotOf(item))
    this.#answers[answer.result === 'absent' ? 'mirror_absent' : 'mirror_maybe'] += 1
    return answer
  }

  /** How long ago it looked at Redis; Infinity before it could for the first time. */
  get ageMs(): number {
    return performance.now() - this.#lookedAt
  }

  /** Looks at Redis now: afterwards it has all that was added before the call. Rejects when it can't: then it goes on with what it has. */
  refresh(): Promise<void> {
    if (!this.#refreshing) return this.#start()
    // What is under way may have read already.
    this.#refreshingNext ??= this.#refreshing
      .catch(() => {})
      .then(() => {
        this.#refreshingNext = undefined
        return this.#refreshing ?? this.#start()
      })
    return this.#refreshingNext
  }

  /** Lets go of the copy, and looks no more. */
  close(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#isClosed = true
    this.#copy = null
    this.#lookedAt = Number.NEGATIVE_INFINITY
    this.#store.learners.delete(this.#learn)
  }

  #answer(spot: Spot): BloomMirrorMembership {
    if (this.ageMs > this.maxAgeMs) return MAYBE.stale
    if (!this.#copy) return MAYBE.missing
    return isMarked(this.#copy, spot) ? MAYBE.bits : (this.#absent as BloomMirrorMembership)
  }

  async #look(): Promise<void> {
    const { context, scope } = this.#store
    if (context.closing.aborted) return
    try {
      await this.refresh()
    } catch (error) {
      if (context.closing.aborted) return
      tell(context, 'bloom', 'refresh_failed')
      context.telemetry.log?.('warn', 'bloom_refresh_failed', { ...scope.facts, reason: String(error) })
    }
    if (this.#isClosed) return
    // Not all processes at the same moment.
    this.#timer = setTimeout(() => void this.#look(), this.everyMs * (0.9 + 0.2 * Math.random()))
    this.#timer.unref()
  }

  #start(): Promise<void> {
    this.#refreshing = this.#refresh().finally(() => {
      this.#refreshing = undefined
      this.#addedMeanwhile = []
    })
    return this.#refreshing
  }

  async #refresh(): Promise<void> {
    const { context } = this.#store
    // What is read from now on has all that was added until now.
    const lookedAt = performance.now()
    const asOf = new Date(context.now())
    const copy = await this.#read()
    if (this.#isClosed) return
    this.#copy = copy
    this.#lookedAt = lookedAt
    this.#absent = Object.freeze({ result: 'absent', asOf })
    for (const spot of this.#addedMeanwhile) if (copy) mark(copy, spot)
    tell(context, 'bloom', 'refreshed')
    for (const result of ['mirror_absent', 'mirror_maybe'] as const) {
      if (this.#answers[result] > 0) tell(context, 'bloom', result, this.#answers[result])
      this.#answers[result] = 0
    }
    if (copy) this.#store.warnIfOver(copy.generation, itemsIn(copy))
  }

  async #read(): Promise<Copy | null> {
    const { current, marks } = await this.#store.news()
    if (!current) return null
    const known = this.#copy?.generation.text === current.text ? this.#copy : null
    const changed = [...marks.keys()].filter((chunk) => !known?.marks[chunk]?.equals(marks[chunk] as Buffer))
    // If another takes its place meanwhile, this one still has all that was added until now.
    return copyOf(current, known, changed, await this.#store.read(current, changed))
  }
}

function copyOf(
  generation: Generation,
  known: Copy | null,
  changed: readonly number[],
  chunks: readonly Buffer[],
): Copy {
  const { bytes } = generation
  const bits = known?.bits ?? new Uint8Array(generation.chunks * bytes)
  const marks = [...(known?.marks ?? [])]
  for (const [at, chunk] of changed.entries()) {
    const read = chunks[at] as Buffer
    if (read.length === bytes + MARK_BYTES) bits.set(read.subarray(0, bytes), chunk * bytes)
    else bits.fill(0xff, chunk * bytes, (chunk + 1) * bytes)
    // A copy: otherwise all that was read would be kept for the sake of these.
    marks[chunk] = Buffer.from(read.subarray(bytes))
  }
  return { generation, bits, marks }
}

/** How many were new for sure. */
const itemsIn = ({ marks }: Copy): number =>
  marks.reduce((sum, mark) => sum + (mark.length === 0 ? 0 : mark.readUInt32BE()), 0)

/** Redis counts the bits of a byte from its highest. */
function isMarked({ generation, bits }: Copy, spot: Spot): boolean {
  const from = chunkOf(spot, generation) * generation.bytes
  return offsetsOf(spot, generation).every(
    (offset) => ((bits[from + (offset >> 3)] as number) & (0x80 >> (offset & 7))) !== 0,
  )
}

function mark({ generation, bits }: Copy, spot: Spot): void {
  const from = chunkOf(spot, generation) * generation.bytes
  for (const offset of offsetsOf(spot, generation)) {
    const at = from + (offset >> 3)
    bits[at] = (bits[at] as number) | (0x80 >> (offset & 7))
  }
}

function maybe(because: 'bits' | 'missing' | 'stale'): BloomMirrorMembership {
  return Object.freeze({ result: 'maybe', because })
}
