import { integer, invalid, show } from '../../input/index.js'

/**
 * How large a filter is: for `capacity` items at a rate of false positives p, bits = −n ln p / (ln 2)² and hashes = bits / n · ln 2. 100,000
 * at 1 % take 117 KiB and 7 hashes, 10,000 at 0.1 % take 18 KiB and 10.
 *
 * The bits lie in chunks of 64 KiB at most, and all of an item in one of them: then a call reads one key, and a mirror reads only chunks
 * that changed. That costs next to nothing: with some ten thousand items a chunk they hold as many as each other within a percent.
 */
export interface BloomSize {
  readonly capacity: number
  readonly falsePositives: number
  /** Of the whole filter. */
  readonly bits: number
  /** Bits that an item sets. */
  readonly hashes: number
  readonly chunks: number
  /** Of the bits of one chunk. */
  readonly chunkBytes: number
}

/** With its mark and what Redis adds a chunk just fits into 64 KiB; with a few bytes more it would be given 80. */
const CHUNK_BYTES_MAX = 65_536 - 64
const CHUNKS_MAX = 512
/** 32 MiB: 27 million items at 1 %. Where that is too little, several filters by a hash of the item are better than a larger one. */
const BITS_MAX = CHUNKS_MAX * CHUNK_BYTES_MAX * 8
const FALSE_POSITIVES_MIN = 1e-6
const FALSE_POSITIVES_MAX = 0.5
const LN2 = Math.log(2)

export function sizeOf(capacity: unknown, falsePositives: unknown): BloomSize {
  const items = integer('capacity', capacity, 1, BITS_MAX)
  const rate = rateOf(falsePositives)
  const bits = Math.ceil((-items * Math.log(rate)) / LN2 ** 2)
  if (bits > BITS_MAX) {
    throw invalid('capacity and falsePositives', `what fits into ${BITS_MAX} bits`, `what takes ${bits}`)
  }
  const bytes = Math.ceil(bits / 8)
  const chunks = Math.ceil(bytes / CHUNK_BYTES_MAX)
  const chunkBytes = Math.ceil(bytes / chunks)
  const hashes = Math.max(1, Math.round((bits / items) * LN2))
  return { capacity: items, falsePositives: rate, bits: chunks * chunkBytes * 8, hashes, chunks, chunkBytes }
}

function rateOf(value: unknown): number {
  if (typeof value === 'number' && value >= FALSE_POSITIVES_MIN && value <= FALSE_POSITIVES_MAX) return value
  throw invalid('falsePositives', `a number from ${FALSE_POSITIVES_MIN} to ${FALSE_POSITIVES_MAX}`, show(value))
}

/** How many items have set so many of the bits of a chunk, most likely. */
export function itemsOf(setBits: number, bits: number, hashes: number): number {
  // All are set: any number may have done that. What would set all but one is the least of it.
  const share = Math.min(setBits, bits - 1) / bits
  return (-bits / hashes) * Math.log(1 - share)
}
