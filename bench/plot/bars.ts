import { document, figure, INK, line, round, text } from './svg.js'

export interface BarPlot {
  readonly title: string
  readonly unit: string
  /** What a bar is made of, from left to right. */
  readonly parts: readonly { readonly name: string; readonly colour: string }[]
  readonly bars: readonly { readonly name: string; readonly values: readonly number[] }[]
}

const WIDTH = 860
const LEFT = 320
const RIGHT = 70
const TOP = 76
const BAR = 24
const STEP = 36

export function barPlot({ title, unit, parts, bars }: BarPlot): string {
  const totals = bars.map(({ values }) => values.reduce((sum, value) => sum + value, 0))
  const perUnit = (WIDTH - LEFT - RIGHT) / Math.max(...totals)
  const height = TOP + bars.length * STEP + 20
  const body: string[] = []
  let legendX = LEFT
  for (const { name, colour } of parts) {
    body.push(`<rect x="${legendX}" y="44" width="14" height="14" fill="${colour}"/>`, text(legendX + 20, 56, name))
    legendX += 40 + name.length * 8
  }
  body.push(text(legendX, 56, unit, { size: 11 }))
  for (const [row, { name, values }] of bars.entries()) {
    const y = TOP + row * STEP
    let x = LEFT
    body.push(text(LEFT - 12, y + 16, name, { anchor: 'end', size: 11 }))
    for (const [part, value] of values.entries()) {
      const width = value * perUnit
      body.push(
        `<rect x="${round(x)}" y="${y}" width="${round(width)}" height="${BAR}" fill="${parts[part]?.colour}"/>`,
        ...(width > 30
          ? [text(x + width / 2, y + 16, figure(value), { anchor: 'middle', size: 11, colour: '#ffffff' })]
          : []),
      )
      x += width
    }
    body.push(text(x + 6, y + 16, figure(totals[row] as number), { size: 11, weight: 'bold' }))
  }
  body.push(line(LEFT, TOP - 6, LEFT, height - 20, INK))
  return document(WIDTH, height, title, body)
}
