import type { Entry } from '../machine/index.js'

/**
 * Can Postgres keep this text as it is? It refuses a NUL; and half a surrogate pair would reach it as a replacement character, so
 * that two keys become one. Checked above, where it can be told to the caller; here so that one such entry harms only itself.
 */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed()
}

export function isStorableEntry({ key, hold, counter, params, metadata }: Entry): boolean {
  return isStorable(key) && isStorable(hold) && isStorable(counter) && isStorable(params) && isStorable(metadata)
}

/** Postgres stores integers, and so many digits of them as a double has. Others come from a state that somebody has damaged. */
export function hasNumbers(entry: Entry): boolean {
  return Object.values(entry).every((value) => typeof value !== 'number' || Number.isSafeInteger(value))
}
