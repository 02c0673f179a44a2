import type { Books, Contender, Place } from '../../harness/contender.js'
import { FallbackContender, HoldfastBooks, HoldfastContender } from './holdfast.js'
import { SingleCallContender } from './holdfast-single-calls.js'
import { RedisLockBooks, RedisLockContender } from './redis-lock.js'
import { RoundTripBooks, RoundTripContender } from './round-trip.js'
import { RowLockBooks, RowLockContender } from './row-lock.js'

export interface Description {
  readonly title: string
  /** The servers that work for it; what others do meanwhile is not its cost. */
  readonly uses: { readonly redis: boolean; readonly postgres: boolean }
  readonly make: (place: Place) => Contender
  readonly books: (place: Place) => Books
}

const BOTH = { redis: true, postgres: true }
const holdfastBooks = (place: Place) => new HoldfastBooks(place)

export const CONTENDERS = {
  ledger: {
    title: 'Holdfast, `ledger`',
    uses: BOTH,
    make: (place) => new HoldfastContender(place, 'ledger'),
    books: holdfastBooks,
  },
  memory: {
    title: 'Holdfast, `memory`',
    uses: BOTH,
    make: (place) => new HoldfastContender(place, 'memory'),
    books: holdfastBooks,
  },
  fallback: {
    title: 'Holdfast, `ledger`, Redis away',
    uses: { redis: false, postgres: true },
    make: (place) => new FallbackContender(place),
    books: holdfastBooks,
  },
  rowlock: {
    title: '(a) Postgres, one transaction an operation',
    uses: { redis: false, postgres: true },
    make: (place) => new RowLockContender(place),
    books: (place) => new RowLockBooks(place),
  },
  redislock: {
    title: '(b) Redis, lock, script, unlock',
    uses: { redis: true, postgres: false },
    make: (place) => new RedisLockContender(place),
    books: (place) => new RedisLockBooks(place),
  },
  singleledger: {
    title: '(c) as `ledger`, one script call an operation',
    uses: BOTH,
    make: (place) => new SingleCallContender(place, 'ledger'),
    books: holdfastBooks,
  },
  singlememory: {
    title: '(c) as `memory`, one script call an operation',
    uses: BOTH,
    make: (place) => new SingleCallContender(place, 'memory'),
    books: holdfastBooks,
  },
  roundtrip: {
    title: 'One Redis round trip and one Postgres commit',
    uses: BOTH,
    make: (place) => new RoundTripContender(place),
    books: (place) => new RoundTripBooks(place),
  },
} as const satisfies Record<string, Description>

export type ContenderName = keyof typeof CONTENDERS

export function makeContender(name: string, place: Place): Contender {
  // Where audits are what is measured: those who are to feel them have none of their own.
  if (name === 'unaudited') return new HoldfastContender(place, 'ledger', { audit: false })
  return CONTENDERS[name as ContenderName].make(place)
}
