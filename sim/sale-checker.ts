import { applyStock, type Entry, emptyStock, takenOf } from '../packages/holdfast/src/machine/index.js'
import type { Operation } from './caller.js'
import type { Commit } from './commits.js'
import type { SimWallet } from './database.js'

/** A sale as it was opened: how many of each item, from 1, and how many in all. */
export interface OpenedSale {
  readonly refs: readonly string[]
  readonly quantities: readonly number[]
  readonly total: number
}

/** How many were free in a bucket after each of its entries, if nothing had ever moved between buckets; and when that was. */
interface Course {
  readonly since: number[]
  readonly total: number[]
  /** By item, from 1. */
  readonly items: number[][]
}

/**
 * Judges a sale over all its buckets, when everything has come to rest: what one gave another took, once; nothing was sold that there was not; and
 * "sold out" was true. Stock that moves is in no bucket for a while, so what each had is counted as if nothing had moved: then it is in one all the
 * time. Buckets are looked at one after the other: so a refusal stands if each of them was at its lowest at some time of the call.
 */
export function checkSale(
  wallets: Iterable<SimWallet>,
  sale: OpenedSale,
  history: readonly Operation[],
  commits: ReadonlyMap<string, Commit>,
): string[] {
  const buckets = [...wallets].filter(({ row }) => sale.refs.includes(row.ref))
  const problems = checkMoves(buckets)
  const courses = buckets.map(({ entries }) => courseOf(entries, sale, commits))
  const last = (values: readonly number[]) => values.at(-1) as number
  for (const [at, quantity] of sale.quantities.entries()) {
    const taken = courses.reduce((sum, { items }) => sum - last(items[at] as number[]), 0)
    if (taken < 0 || taken > quantity) problems.push(`item ${at + 1}: ${taken} of ${quantity} are taken`)
  }
  for (const operation of history) {
    const { heard, command, wanted = [] } = operation
    if (heard.type !== 'no' || heard.error.code !== 'sold_out') continue
    if (buckets.some(({ entries }) => entries.some(({ key }) => key === command.key)))
      problems.push(`${command.key} was refused and is in the journal`)
    const { item } = heard.error.facts
    const asked = wanted.find((one) => one.item === (item ?? 0))
    const quantity = asked?.quantity ?? 1
    const begun = item === undefined ? sale.total : (sale.quantities[Number(item) - 1] as number)
    const lowest = courses.reduce((sum, course) => {
      const values = item === undefined ? course.total : (course.items[Number(item) - 1] as number[])
      return sum + Math.min(...during(course.since, values, operation))
    }, begun)
    if (lowest >= quantity) problems.push(`${command.key} (${command.params}) was refused, and ${lowest} were there`)
  }
  return problems
}

function checkMoves(buckets: readonly SimWallet[]): string[] {
  const all = buckets.flatMap(({ entries }) => entries.map(({ params }) => params))
  const moved = (word: string) => all.filter((params) => params.startsWith(word)).map((params) => params.slice(5))
  const [given, taken] = [moved('give '), moved('take ')].map((words) => words.sort().join(', '))
  return given === taken ? [] : [`given is ${given}; taken is ${taken}`]
}

function courseOf(entries: readonly Entry[], { quantities }: OpenedSale, commits: ReadonlyMap<string, Commit>): Course {
  const stock = emptyStock()
  const course: Course = { since: [0], total: [0], items: quantities.map(() => [0]) }
  let total = 0
  for (const entry of entries) {
    const [word] = entry.params.split(' ', 1)
    // What it was filled with, and what a caller at the end put in, is no part of what happens in a sale.
    if (word !== 'give' && word !== 'take' && word !== 'credit') {
      applyStock(stock, entry)
      total += entry.availableDelta
    }
    course.since.push(commits.get(entry.hash)?.last ?? 0)
    course.total.push(total)
    for (const [at, values] of course.items.entries()) values.push(0 - takenOf(stock, at + 1))
  }
  return course
}

/** The values that were in force at some time of a call. */
function during(since: readonly number[], values: readonly number[], { startedAt, endedAt }: Operation): number[] {
  return values.filter((_, at) => {
    const until = since[at + 1] ?? Number.POSITIVE_INFINITY
    return (since[at] as number) <= endedAt && until >= startedAt
  })
}
