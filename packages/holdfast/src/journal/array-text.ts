/** Array parameters as Postgres's array text: for statements that are not on the hot path. */

/** From strings that must not be taken for anything else. */
export function textArray(values: readonly string[]): string {
  return `{${values.map(text).join(',')}}`
}

export function bytesArray(values: readonly string[]): string {
  return `{${values.map((hex) => `"\\\\x${hex}"`).join(',')}}`
}

function text(value: string): string {
  return `"${/["\\]/.test(value) ? value.replace(/["\\]/g, '\\$&') : value}"`
}
