import bloomFilters from 'bloom-filters'
import { BloomFilter } from 'holdfast/primitives'
import { type Contender, connect, type Work } from './contender.js'

const RATE = 0.01
const PER_CALL = 500

export const bloomInMemory: Work = {
  name: 'bloom-memory',
  title: 'Bloom filter, in the process',
  remarks:
    '`mightHave` of a mirror against `has` of bloom-filters, in memory; half of what is asked for is there. Ours hashes with HMAC-SHA-256, so that nobody can make up items that collide; bloom-filters with xxHash.',
  isShared: false,
  open: (allot, { items }) => Promise.all([mirror(allot(), items), bloomFiltersOf(items)]),
}

export const bloomInRedis: Work = {
  name: 'bloom-redis',
  title: 'Bloom filter, in Redis',
  remarks: '`mightHave` of the filter itself. bloom-filters keeps none in Redis, so nobody stands beside it.',
  isShared: true,
  open: async (allot, { items }) => [await inRedis(allot(), items)],
}

async function mirror(url: string, items: number): Promise<Contender> {
  const primitives = await connect(url)
  const filter = new BloomFilter(primitives, 'bench', { capacity: items, falsePositives: RATE })
  await filter.rebuild(() => wordsOf(items))
  const mirror = filter.mirror()
  await mirror.refresh()
  return inMemory(
    '`BloomMirror`',
    items,
    (item) => mirror.mightHave(item).result === 'maybe',
    async () => {
      mirror.close()
      await primitives.close()
    },
  )
}

async function bloomFiltersOf(items: number): Promise<Contender> {
  const filter = bloomFilters.BloomFilter.from(wordsOf(items), RATE)
  return inMemory(
    'bloom-filters',
    items,
    (item) => filter.has(item),
    async () => {},
  )
}

function inMemory(title: string, items: number, has: (item: string) => boolean, close: () => Promise<void>): Contender {
  const tally = new Tally(items)
  return {
    title,
    perCall: PER_CALL,
    async call() {
      for (let n = 0; n < PER_CALL; n += 1) {
        const item = tally.next()
        tally.answered(has(item))
      }
      // Timers come between.
      await new Promise((resolve) => setImmediate(resolve))
    },
    check: async () => tally.wrong(),
    close,
  }
}

async function inRedis(url: string, items: number): Promise<Contender> {
  const primitives = await connect(url)
  const filter = new BloomFilter(primitives, 'bench', { capacity: items, falsePositives: RATE })
  await filter.rebuild(() => wordsOf(items))
  const tally = new Tally(items)
  return {
    title: '`BloomFilter`',
    perCall: 1,
    async call() {
      const item = tally.next()
      const isThere = tally.isThere
      tally.answered((await filter.mightHave(item)).result === 'maybe', isThere)
    },
    check: async () => tally.wrong(),
    close: () => primitives.close(),
  }
}

const wordsOf = (items: number): string[] => Array.from({ length: items }, (_, number) => `item-${number}`)

/** Asks for what is there and for what is not by turns, and counts wrong answers. */
class Tally {
  isThere = false
  #asked = 0
  #missed = 0
  #falsePositives = 0

  constructor(readonly items: number) {}

  next(): string {
    this.isThere = !this.isThere
    this.#asked += 1
    return `${this.isThere ? 'item' : 'other'}-${this.#asked % this.items}`
  }

  answered(maybe: boolean, isThere = this.isThere): void {
    if (isThere && !maybe) this.#missed += 1
    if (!isThere && maybe) this.#falsePositives += 1
  }

  wrong(): string | null {
    if (this.#asked === 0) return 'nothing was asked'
    if (this.#missed > 0) return `${this.#missed} of ${this.#asked} were there and not found`
    const rate = this.#falsePositives / (this.#asked / 2)
    return rate > 5 * RATE ? `${(rate * 100).toFixed(1)} % false positives` : null
  }
}
