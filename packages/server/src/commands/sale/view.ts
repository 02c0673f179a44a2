/** What is seen of a sale that goes on: from how it stood at some moments, and nothing else. */
import type { SaleState } from 'holdfast'
import { number } from '../table.js'
import { stateOf } from './texts.js'

export interface Sample {
  readonly at: number
  readonly sale: SaleState
}

/** Units a second, rounded. */
export interface Rates {
  readonly sold: number
  readonly reserved: number
  readonly stock: number
}

/** How far back rates look: long enough to be calm, short enough to be of now. */
const WINDOW_MS = 5_000
/** What lies in checkouts of a sale that has ended comes back by itself; whoever looks waits so long for that. */
const GRACE_MS = 10_000
const BAR_MAX = 60

/** With the latest, and without what rates need no more. */
export function addSample(samples: readonly Sample[], latest: Sample): Sample[] {
  const from = samples.findIndex(({ at }) => at > latest.at - WINDOW_MS)
  // The one before the window as well: a sample a second would leave less than the window otherwise.
  return [...(from < 0 ? samples.slice(-1) : samples.slice(Math.max(0, from - 1))), latest]
}

export function ratesOf(samples: readonly Sample[]): Rates {
  const [first, last] = [samples[0], samples.at(-1)]
  if (!first || !last || last.at <= first.at) return { sold: 0, reserved: 0, stock: 0 }
  const perSecond = (of: (sale: SaleState) => number): number =>
    // No minus before a zero.
    Math.round(((of(last.sale) - of(first.sale)) / (last.at - first.at)) * 1_000) + 0
  return {
    sold: perSecond(({ sold }) => sold),
    reserved: perSecond(({ reserved }) => reserved),
    stock: perSecond(({ stock }) => stock),
  }
}

/** Nothing can happen in it any more. */
export function isOver({ at, sale }: Sample): boolean {
  const { soldOut, reserved, open, endsAt, reserve } = sale
  if (soldOut) return true
  if (at >= endsAt) return reserved === 0 || at >= endsAt + GRACE_MS
  // What is only noted in checkouts can still be bought.
  return !open && reserved === 0 && reserve === 'checkout'
}

export interface Look {
  readonly columns: number
  readonly unicode: boolean
  /** What there is to say beside it; empty: nothing. */
  readonly note: string
}

/** A screenful, a line each, none of them wider than the screen. */
export function screenOf(samples: readonly Sample[], { columns, unicode, note }: Look): string[] {
  const latest = samples.at(-1) as Sample
  const { sale } = latest
  const rates = ratesOf(samples)
  const width = Math.max(...[sale.sold, sale.reserved, sale.stock].map((count) => number(count).length))
  const row = (name: string, count: number, rate: number): string =>
    `${name.padEnd(12)}  ${number(count).padStart(width)}  ${signed(rate)}/s`
  const share = `${percentOf(sale)} % sold`
  const barWidth = Math.max(10, Math.min(BAR_MAX, columns - share.length - 5))
  const lines = [
    [sale.id, stateOf(sale, latest.at), timeLeft(latest)].filter((part) => part !== '').join('   '),
    `${barOf(sale, barWidth, unicode)}  ${share}`,
    row('sold', sale.sold, rates.sold),
    row('in checkouts', sale.reserved, rates.reserved),
    row('left', sale.stock, rates.stock),
    note,
  ]
  // A line that is as wide as the screen would make some terminals begin another.
  return lines.map((line) => [...line].slice(0, columns - 1).join(''))
}

/** For who reads lines, one after the other. */
export function lineOf(samples: readonly Sample[]): string {
  const latest = samples.at(-1) as Sample
  const { sale, at } = latest
  const rates = ratesOf(samples)
  const parts = [
    new Date(at).toISOString().slice(11, 19),
    stateOf(sale, at),
    `sold ${number(sale.sold)} (${signed(rates.sold)}/s)`,
    `in checkouts ${number(sale.reserved)}`,
    `left ${number(sale.stock)}`,
    `${percentOf(sale)} %`,
    timeLeft(latest),
  ]
  return parts.filter((part) => part !== '').join('  ')
}

const signed = (rate: number): string => (rate > 0 ? `+${number(rate)}` : number(rate))

/** 100 only when all is sold. */
const percentOf = ({ sold, limit }: SaleState): number => Math.floor((sold / limit) * 100)

/** Sold, in checkouts, left; what there is of something is at least a cell of it, as long as there is room. */
function barOf({ sold, reserved, limit }: SaleState, width: number, unicode: boolean): string {
  const [full, half, empty] = unicode ? ['█', '▒', '░'] : ['#', '=', '-']
  const cells = (count: number): number => (count === 0 ? 0 : Math.max(1, Math.floor((count / limit) * width)))
  const soldCells = Math.min(width, cells(sold))
  const reservedCells = Math.min(width - soldCells, cells(reserved))
  const rest = width - soldCells - reservedCells
  return `[${full?.repeat(soldCells)}${half?.repeat(reservedCells)}${empty?.repeat(rest)}]`
}

function timeLeft({ at, sale: { startsAt, endsAt } }: Sample): string {
  if (at < startsAt) return `starts in ${durationOf(startsAt - at)}`
  return at < endsAt ? `ends in ${durationOf(endsAt - at)}` : ''
}

/** 41:07, 1:02:03, 3 d 1:02:03 */
function durationOf(ms: number): string {
  const seconds = Math.ceil(ms / 1_000)
  const two = (count: number): string => String(count).padStart(2, '0')
  const days = Math.floor(seconds / 86_400)
  const hours = Math.floor((seconds % 86_400) / 3_600)
  const clock = `${two(Math.floor((seconds % 3_600) / 60))}:${two(seconds % 60)}`
  const withHours = days > 0 || hours > 0 ? `${hours}:${clock}` : clock
  return days > 0 ? `${days} d ${withHours}` : withHours
}
