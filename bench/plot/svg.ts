/** The little that the plots share. Plain SVG that looks the same in a browser, on a forge and on paper. */
export const INK = '#1f2933'
export const FAINT = '#d5dbe1'
const FONT = 'DejaVu Sans, Verdana, sans-serif'

/** Told apart also by those who don't see red and green as others do. */
export const COLOURS = ['#0072b2', '#56b4e9', '#d55e00', '#e69f00', '#009e73', '#7fc8a9', '#555555'] as const

const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

export function document(width: number, height: number, title: string, body: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(title)}" font-family="${FONT}" font-size="12" fill="${INK}">`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    text(20, 26, title, { size: 15, weight: 'bold' }),
    ...body,
    '</svg>',
    '',
  ].join('\n')
}

export function text(
  x: number,
  y: number,
  content: string,
  { anchor = 'start', size = 12, weight = 'normal', colour = INK } = {},
): string {
  return `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}" font-size="${size}" font-weight="${weight}" fill="${colour}">${escaped(content)}</text>`
}

export function line(x1: number, y1: number, x2: number, y2: number, colour: string, width = 1): string {
  return `<line x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}" stroke="${colour}" stroke-width="${width}"/>`
}

export const round = (value: number) => Math.round(value * 10) / 10

/** 12,345 · 1.2 · 0.035 */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '–'
  if (value >= 100) return Math.round(value).toLocaleString('en')
  return String(Number(value.toPrecision(2)))
}
