import { HoldfastError } from '../../errors/index.js'
import { activityRead } from '../../redis/scripts.generated.js'
import { callOnce } from '../calls.js'
import type { Bitmaps } from './bitmap.js'

export interface Returned {
  readonly count: number
  /** Of those of the day: 0 to 1. Null: there were none. */
  readonly rate: number | null
}

export interface RetentionRow {
  readonly day: string
  /** Who was active on that day. */
  readonly size: number
  /** At 0 the day itself, at 1 the next one, and so on to the last day of the table. */
  readonly returned: readonly Returned[]
}

export interface Progress {
  readonly doneBytes: number
  readonly totalBytes: number
}

/** Of all days at once. With 31 days a portion is compared in about 2 ms, which is how long this process then does nothing else. */
const PORTION_BYTES = 256 * 1_024

/**
 * Reads all days portion by portion, and counts who is in any two of them. Marks that are set meanwhile may be counted or not; of an index
 * that was lost meanwhile nothing is, and the table is made anew.
 */
export async function retentionOf<Member>(
  bitmaps: Bitmaps<Member>,
  days: readonly { readonly day: string; readonly part: string }[],
  signal: AbortSignal | undefined,
  onProgress: ((progress: Progress) => void) | undefined,
): Promise<RetentionRow[]> {
  const { context, scope, index } = bitmaps
  // Words of 32 bits.
  const size = Math.floor(PORTION_BYTES / days.length / 4) * 4
  let asked = ''
  let both = nothing(days.length)
  for (let from = 0, total = 1; from < total; from += size) {
    if (signal?.aborted) throw new HoldfastError('aborted', 'the retention table was given up')
    const answer = (await index.within(false, (generation) => {
      if (asked !== generation) {
        asked = generation
        both = nothing(days.length)
        from = 0
      }
      const keys = days.map(({ part }) => bitmaps.key(part, generation))
      const args = [days.length, generation, from, from + size - 1]
      return callOnce(context, scope, activityRead, [index.scope.base, ...keys], args)
    })) as [number, ...Buffer[]]
    const [length, ...portions] = answer
    // Days that grow while they are read do not move the end.
    if (from === 0) total = length
    addOverlaps(both, portions.map(words))
    onProgress?.({ doneBytes: Math.min(from + size, total), totalBytes: total })
  }
  return days.map(({ day }, row) => tableRow(day, (both[row] as number[]).slice(row)))
}

const nothing = (days: number): number[][] => Array.from({ length: days }, () => new Array<number>(days).fill(0))

function tableRow(day: string, counts: readonly number[]): RetentionRow {
  const [size = 0] = counts
  return { day, size, returned: counts.map((count) => ({ count, rate: size === 0 ? null : count / size })) }
}

/** A copy, because a reply lies anywhere in the memory of its connection and words don't. */
function words(bytes: Buffer): Uint32Array {
  const aligned = new Uint32Array(Math.ceil(bytes.length / 4))
  new Uint8Array(aligned.buffer).set(bytes)
  return aligned
}

function addOverlaps(both: number[][], days: readonly Uint32Array[]): void {
  for (const [row, one] of days.entries()) {
    const counts = both[row] as number[]
    for (let column = row; column < days.length; column += 1) {
      counts[column] = (counts[column] as number) + overlap(one, days[column] as Uint32Array)
    }
  }
}

/** Bits that are set in both: pairs, then fours, then eights are added up within the word. */
function overlap(one: Uint32Array, other: Uint32Array): number {
  const length = Math.min(one.length, other.length)
  let count = 0
  for (let at = 0; at < length; at += 1) {
    let word = (one[at] as number) & (other[at] as number)
    if (word === 0) continue
    word -= (word >>> 1) & 0x55555555
    word = (word & 0x33333333) + ((word >>> 2) & 0x33333333)
    count += Math.imul((word + (word >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
  }
  return count
}
