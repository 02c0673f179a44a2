/** Rows under their headings, in columns that are as wide as they need to be. */
export function tableOf(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [headings, ...rows]
  const widths = headings.map((_, column) => Math.max(...all.map((row) => (row[column] ?? '').length)))
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] as number))
      .join('  ')
      .trimEnd()
  return all.map(line).join('\n')
}

/** 2026-11-15 10:15:03 */
export const momentOf = (timeMs: number): string => new Date(timeMs).toISOString().slice(0, 19).replace('T', ' ')

export const number = (value: number): string => value.toLocaleString('en-US')

/** `1 client`, `2 clients`. */
export const counted = (count: number, one: string): string => `${number(count)} ${one}${count === 1 ? '' : 's'}`
