import type { SaleItem, SaleTerms, WalletRow } from '../../journal/index.js'
import type { Place } from '../../redis/index.js'
import type { Running } from '../../sequencer/index.js'
import { PAGE_DEFAULT, PAGE_MAX } from '../reading.js'
import { reading } from '../reads.js'
import * as check from '../validate.js'
import type { WaitOptions } from '../waiting.js'
import type { SaleMemory } from './memory.js'
import { isSoldOut } from './sold-out.js'
import type { SaleTenant } from './tenant.js'

export interface SaleState extends Omit<SaleTerms, 'itemsHash'> {
  readonly id: string
  /** What can be checked out, what lies in open checkouts, what was bought. */
  readonly stock: number
  readonly reserved: number
  readonly sold: number
  /** False: it was closed. */
  readonly open: boolean
  /** Everything is bought, for good. With a stock of 0 and something in `reserved` it may come back. */
  readonly soldOut: boolean
}

export interface SalesOptions extends WaitOptions {
  /** What comes after this id, whether there is such a sale or not. Default: from the beginning. */
  readonly after?: string
  /** 1 to 1,000, default 100. */
  readonly limit?: number
}

export interface SaleItemsOptions extends WaitOptions {
  /** Items behind the one with this number. Default 0: from the first. */
  readonly after?: number
  /** 1 to 1,000, default 100. */
  readonly limit?: number
}

/** An item, and how many of it nobody has taken: not bought, and in no open checkout that reserves. */
export interface SaleItemState {
  /** Its place in the list that the sale was opened with, from 1. */
  readonly number: number
  readonly id: string
  readonly quantity: number
  readonly left: number
}

const SALES_NAMES = check.namesOf<SalesOptions>({ after: true, limit: true, timeout: true, signal: true })
const ITEMS_NAMES = check.namesOf<SaleItemsOptions>({ after: true, limit: true, timeout: true, signal: true })

export async function readSales(tenant: SaleTenant, given: unknown): Promise<SaleState[]> {
  const options = check.options('options', given, SALES_NAMES)
  const after = options.after === undefined ? '' : check.text('after', options.after)
  const limit = check.integer('limit', options.limit ?? PAGE_DEFAULT, 1, PAGE_MAX)
  return reading(tenant, options, async () =>
    readStates(tenant, await tenant.sales.list(tenant.keys.tenant, after, limit)),
  )
}

interface AskedSale {
  readonly id: string
  readonly terms: SaleTerms
}

/** Read at once: some 11 ms of work. A page of 1,000 sales may have 64 times as many buckets, and others want to be answered meanwhile. */
const BUCKETS_AT_ONCE = 1_024

/** How sales stand, as the journal has it. */
export async function readStates(tenant: SaleTenant, asked: readonly AskedSale[]): Promise<SaleState[]> {
  const states: SaleState[] = []
  let portion: AskedSale[] = []
  let buckets = 0
  for (const sale of asked) {
    if (buckets + sale.terms.buckets > BUCKETS_AT_ONCE) {
      states.push(...(await readAtOnce(tenant, portion)))
      portion = []
      buckets = 0
    }
    portion.push(sale)
    buckets += sale.terms.buckets
  }
  return [...states, ...(await readAtOnce(tenant, portion))]
}

async function readAtOnce({ keys, journal, sales }: SaleTenant, asked: readonly AskedSale[]): Promise<SaleState[]> {
  const refs = asked.map(({ id, terms }) => refsOf(keys.ofSale.bind(keys, id), terms))
  const rows = new Map((await journal.read(refs.flat())).map((row) => [row.ref, row]))
  const isEmpty = (ref: string) => rows.get(ref)?.available === 0 && rows.get(ref)?.reserved === 0
  // Looked at once more, all at one time: what moves from one bucket to another meanwhile is in neither.
  const empty = refs.filter((buckets) => buckets.every(isEmpty)).flat()
  const standing = new Map((empty.length === 0 ? [] : await sales.standing(empty)).map((one) => [one.ref, one]))
  return asked.map(({ id, terms: { itemsHash: _, ...terms } }, at) => {
    const buckets = (refs[at] as string[]).flatMap((ref) => rows.get(ref) ?? [])
    const sum = (of: (row: WalletRow) => number) => buckets.reduce((all, row) => all + of(row), 0)
    const stock = sum(({ available }) => available)
    const reserved = sum((row) => row.reserved)
    const open = buckets.every(({ status }) => status === 'active')
    return {
      id,
      ...terms,
      stock,
      reserved,
      sold: terms.limit - stock - reserved,
      open,
      soldOut: isSoldOut((refs[at] as string[]).flatMap((ref) => standing.get(ref) ?? [])),
    }
  })
}

const refsOf = (place: (bucket: number) => Place, { buckets }: SaleTerms): string[] =>
  Array.from({ length: buckets }, (_, bucket) => place(bucket).ref)

/** Null: there is no such sale. */
export async function readItems(tenant: SaleTenant, id: string, given: unknown): Promise<SaleItemState[] | null> {
  const options = check.options('options', given, ITEMS_NAMES)
  const after = check.integer('after', options.after ?? 0, 0, Number.MAX_SAFE_INTEGER - 1)
  const limit = check.integer('limit', options.limit ?? PAGE_DEFAULT, 1, PAGE_MAX)
  const { keys, sales } = tenant
  return reading(tenant, options, async () => {
    const memory = tenant.memories.of(tenant.keys.tenant, id)
    const terms = await memory.terms()
    if (!terms) return null
    // A number of Postgres's is smaller, and no sale has so many.
    const items = after > terms.items ? [] : await sales.itemsAfter(keys.tenant, id, after, limit)
    const taken = items.length === 0 ? new Map<number, number>() : await takenOf(tenant, id, memory, terms)
    return items.map(({ item, ...facts }: SaleItem) => {
      const left = facts.quantity - (taken.get(item) ?? 0)
      return { number: item, ...facts, left: Math.max(0, left) }
    })
  })
}

/**
 * How many of each item are taken takes reading what happened since the last note of the stock. Whoever pages through items, or asks again and
 * again, gets what was read a moment ago: a second, or twenty times as long as it took, so that it is never more than a twentieth of the time.
 */
const KEPT_MS = 1_000
const KEPT_SHARE = 20
const known = new WeakMap<SaleMemory, Promise<Map<number, number>>>()

function takenOf(tenant: SaleTenant, id: string, memory: SaleMemory, terms: SaleTerms): Promise<Map<number, number>> {
  const before = known.get(memory)
  if (before) return before
  const beganAt = performance.now()
  const taken = readTaken(tenant, id, terms)
  known.set(memory, taken)
  taken.then(
    () => {
      const keptMs = Math.max(KEPT_MS, (performance.now() - beganAt) * KEPT_SHARE)
      // Of a million items it is some 50 MB: what is too old to be told is not kept.
      setTimeout(() => known.delete(memory), keptMs).unref()
    },
    () => known.delete(memory),
  )
  return taken
}

async function readTaken({ keys, journal }: SaleTenant, id: string, terms: SaleTerms): Promise<Map<number, number>> {
  const byItem = new Map<number, number>()
  // One bucket after the other: the stock of a large sale is some megabytes.
  for (const { ref, seq } of await journal.read(refsOf(keys.ofSale.bind(keys, id), terms))) {
    const { taken } = await journal.stock(ref, seq)
    for (const [item, count] of taken) byItem.set(item, (byItem.get(item) ?? 0) + count)
  }
  return byItem
}

/** The running checkout of a buyer: as Redis has it, or where Redis can't say, the journal. */
export async function readRunning(tenant: SaleTenant, place: Place, buyer: string): Promise<Running | null> {
  const { sequencer, journal } = tenant
  const [row] = await journal.read([place.ref])
  if (!row) return null
  const hot = await sequencer.running(place, row.epoch, { buyer }).catch(() => 'untrusted' as const)
  if (hot !== 'untrusted') return hot
  const { buyers, checkouts } = await tenant.journal.stock(place.ref, row.seq)
  const hold = buyers.get(buyer)?.running ?? ''
  const last = hold === '' ? null : await journal.holdEntry(place.ref, hold)
  return last && { hold, expiresAt: last.holdExpiresAt, lines: checkouts.get(hold)?.lines ?? [] }
}
