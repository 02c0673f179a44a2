import type { Finding } from 'holdfast'

/** What stays is found by every audit. It is told once, and again after this. */
const REPEAT_MS = 60 * 60 * 1_000
const TOLD_MAX = 10_000

/** Knows which findings were told already. */
export class FindingsNews {
  readonly #told = new Map<string, number>()

  isNews(finding: Finding): boolean {
    const name = nameOf(finding)
    const now = Date.now()
    if (finding.action !== 'repaired' && now - (this.#told.get(name) ?? 0) < REPEAT_MS) return false
    this.#told.delete(name)
    this.#told.set(name, now)
    for (const oldest of this.#told.keys()) {
      if (this.#told.size <= TOLD_MAX) break
      this.#told.delete(oldest)
    }
    return true
  }

  /** Nobody was told after all: it is news again. */
  forget(names: readonly string[]): void {
    for (const name of names) this.#told.delete(name)
  }
}

export const nameOf = ({ cause, ref, tenant, field, seq, action }: Finding): string =>
  [cause, tenant, ref, field, seq, action].join(' ')
