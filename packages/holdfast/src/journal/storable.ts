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
