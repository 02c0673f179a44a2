/** How a text becomes a value. `undefined`: it is none. */

export const integer =
  (min: number, max: number) =>
  (text: string): number | undefined => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
    return value >= min && value <= max ? value : undefined
  }

export const amount = (min: number) => integer(min, Number.MAX_SAFE_INTEGER)

export const oneOf =
  <T extends string>(values: readonly T[]) =>
  (text: string): T | undefined =>
    values.find((value) => value === text)

export const boolean = (text: string): boolean | undefined =>
  ({ true: true, '1': true, false: false, '0': false })[text.toLowerCase()]

export const url =
  (...protocols: readonly string[]) =>
  (text: string): string | undefined =>
    URL.canParse(text) && protocols.includes(new URL(text).protocol) ? text : undefined

/** Several hosts are no URL to Node; the library reads them, and says what is wrong with them. */
const SEVERAL_REDIS = /^rediss?\+(sentinel|cluster):\/\/./
export const redisUrl = (text: string): string | undefined =>
  SEVERAL_REDIS.test(text) ? text : url('redis:', 'rediss:')(text)

export const nonEmpty = (text: string): string | undefined => (text.length > 0 ? text : undefined)

/** What ids, keys and names are made of. */
export const plainText =
  (max: number) =>
  (text: string): string | undefined =>
    new RegExp(`^\\P{Cc}{1,${max}}$`, 'u').test(text) ? text : undefined

export const list =
  <T>(read: (text: string) => T | undefined) =>
  (text: string): readonly T[] | undefined => {
    const values = text.split(',').map((one) => read(one.trim()))
    return values.includes(undefined) ? undefined : ([...new Set(values)] as T[])
  }

export const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

export const durationMs =
  (max: number) =>
  (text: string): number | undefined => {
    const match = /^(\d{1,12})(ms|[smhd])$/.exec(text)
    if (!match) return undefined
    const ms = Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS]
    return ms >= 1 && ms <= max ? ms : undefined
  }

/** Milliseconds since 1970: `now`, `+1h` from now, or a time that says its zone, such as 2026-11-20T18:00:00Z. */
export function instant(text: string): number | undefined {
  if (text === 'now') return Date.now()
  if (text.startsWith('+')) {
    const ms = durationMs(3_650 * UNIT_MS.d)(text.slice(1))
    return ms && Date.now() + ms
  }
  const zoned = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/.test(text)
  const ms = zoned ? Date.parse(text) : Number.NaN
  return Number.isNaN(ms) ? undefined : ms
}

/** Scheme, host and port, as browsers send it; `*` for any. */
export const origin = (text: string): string | undefined =>
  text === '*' || (URL.canParse(text) && new URL(text).origin === text) ? text : undefined

/** The text itself: it is passed on as it was given. */
export function json(text: string): string | undefined {
  try {
    JSON.parse(text)
    return text
  } catch {
    return undefined
  }
}
