import { invalid, show } from '../../input/index.js'
import { note, tell } from '../context.js'
import { newGeneration } from './generation.js'
import type { BloomSize } from './size.js'
import type { Spot } from './spot.js'
import { type BloomStore, BUILD_TTL_MS } from './store.js'

/**
 * - `swapped`: it answers now, with so many items.
 * - `busy`: somebody else is building one. Nothing was read.
 * - `lost`: this process was away for so long that what it built is gone, or the filter was dropped. What answered before still does.
 * - `expired`: the filter has ended.
 */
export type BloomRebuilt =
  | { readonly result: 'swapped'; readonly items: number }
  | { readonly result: 'busy' | 'lost' | 'expired' }

/** All that belongs into the filter, as of when it is called or later. */
export type BloomItems = () => AsyncIterable<string> | Iterable<string>

/** Items that are under way at one time: some 32 calls, between which the server serves others. */
const PORTION = 1_024

export async function rebuild(
  store: BloomStore,
  size: BloomSize,
  spotOf: (item: unknown) => Spot,
  items: BloomItems,
): Promise<BloomRebuilt> {
  const rebuilt = await build(store, size, spotOf, items)
  tell(store.context, 'bloom', rebuilt.result)
  note(store.context, `bloom_rebuild_${rebuilt.result}`, store.scope)
  return rebuilt
}

async function build(
  store: BloomStore,
  size: BloomSize,
  spotOf: (item: unknown) => Spot,
  items: BloomItems,
): Promise<BloomRebuilt> {
  const next = newGeneration(size)
  await store.make(next)
  if ((await store.offer(next)) === 'busy') {
    // Its chunks end by themselves.
    return { result: 'busy' }
  }
  // The items may be slow to come: what is built is kept for as long as somebody waits for them.
  const alive = setInterval(() => void store.renew(next).catch(() => {}), BUILD_TTL_MS / 3)
  alive.unref()
  try {
    // Only now: from here on everything that is added goes into the new one too, and what was added before is among what is read.
    let count = 0
    for await (const part of inPortions(items())) {
      const isIn = await Promise.all(part.map((item) => store.fill(next, spotOf(item))))
      if (isIn.includes(false)) return { result: 'lost' }
      count += part.length
    }
    const result = await store.swap(next)
    return result === 'swapped' ? { result, items: count } : { result }
  } catch (error) {
    await store.abandon(next).catch(() => {})
    throw error
  } finally {
    clearInterval(alive)
  }
}

async function* inPortions(items: unknown): AsyncGenerator<string[]> {
  const isIterable =
    typeof items === 'object' && items !== null && (Symbol.asyncIterator in items || Symbol.iterator in items)
  if (!isIterable) throw invalid('what items() returns', 'something to iterate over', show(items))
  let portion: string[] = []
  for await (const item of items as Iterable<string>) {
    if (portion.push(item) < PORTION) continue
    yield portion
    portion = []
  }
  if (portion.length > 0) yield portion
}
