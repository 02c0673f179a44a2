import { document, FAINT, figure, INK, line, round, text } from './svg.js'

export interface Point {
  readonly x: number
  readonly y: number
  /** The rounds lie between these. */
  readonly low: number
  readonly high: number
}

export interface Series {
  readonly name: string
  readonly colour: string
  readonly dashed?: boolean
  readonly points: readonly Point[]
}

export interface LinePlot {
  readonly title: string
  readonly xLabel: string
  readonly yLabel: string
  readonly series: readonly Series[]
}

const WIDTH = 860
const HEIGHT = 440
const LEFT = 78
const RIGHT = 330
const TOP = 66
const BOTTOM = 56

/** Both axes logarithmic: ways that differ by a factor lie equally far apart wherever they are. */
export function linePlot({ title, xLabel, yLabel, series }: LinePlot): string {
  const points = series.flatMap((one) => one.points)
  const xs = [...new Set(points.map(({ x }) => x))].sort((a, b) => a - b)
  const ticks = decades(Math.min(...points.map(({ low }) => low)), Math.max(...points.map(({ high }) => high)))
  const xAt = scale(xs[0] as number, xs.at(-1) as number, LEFT + 24, WIDTH - RIGHT - 24)
  const yAt = scale(ticks[0] as number, ticks.at(-1) as number, HEIGHT - BOTTOM, TOP)
  const body: string[] = []
  for (const tick of ticks) {
    body.push(line(LEFT, yAt(tick), WIDTH - RIGHT, yAt(tick), FAINT))
    body.push(text(LEFT - 8, yAt(tick) + 4, figure(tick), { anchor: 'end' }))
  }
  for (const x of xs) {
    body.push(line(xAt(x), HEIGHT - BOTTOM, xAt(x), HEIGHT - BOTTOM + 5, INK))
    body.push(text(xAt(x), HEIGHT - BOTTOM + 20, figure(x), { anchor: 'middle' }))
  }
  body.push(line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, INK))
  body.push(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, xLabel, { anchor: 'middle' }))
  body.push(text(20, 46, yLabel, { size: 11 }))
  for (const [index, one] of series.entries()) {
    body.push(...drawSeries(one, xAt, yAt))
    const y = TOP + 14 + index * 24
    body.push(stroke([`${WIDTH - RIGHT + 20},${y}`, `${WIDTH - RIGHT + 48},${y}`], one))
    body.push(text(WIDTH - RIGHT + 56, y + 4, one.name, { size: 11 }))
  }
  return document(WIDTH, HEIGHT, title, body)
}

type Scale = (value: number) => number

function drawSeries(series: Series, xAt: Scale, yAt: Scale): string[] {
  const drawn = series.points.map(({ x, y }) => `${round(xAt(x))},${round(yAt(y))}`)
  return [
    stroke(drawn, series),
    ...series.points.flatMap(({ x, y, low, high }) => [
      line(xAt(x), yAt(low), xAt(x), yAt(high), series.colour, 1),
      `<circle cx="${round(xAt(x))}" cy="${round(yAt(y))}" r="3.5" fill="${series.colour}"/>`,
    ]),
  ]
}

function stroke(points: readonly string[], { colour, dashed }: Series): string {
  return `<polyline points="${points.join(' ')}" fill="none" stroke="${colour}" stroke-width="2"${dashed ? ' stroke-dasharray="5 4"' : ''}/>`
}

function scale(from: number, to: number, start: number, end: number): Scale {
  if (from === to) return () => (start + end) / 2
  return (value) => start + ((end - start) * Math.log(value / from)) / Math.log(to / from)
}

/** 1, 3, 10, 30, … from below the least to above the most. */
function decades(least: number, most: number): number[] {
  const ticks: number[] = []
  for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); power += 1) {
    for (const step of [1, 3]) ticks.push(Number((step * 10 ** power).toPrecision(1)))
  }
  const from = ticks.findLastIndex((tick) => tick <= least)
  const to = ticks.findIndex((tick) => tick >= most)
  return ticks.slice(Math.max(0, from), to + 1)
}
