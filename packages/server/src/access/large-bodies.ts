import { HoldfastError } from 'holdfast'

/** What is larger is read in one piece and checked in one go: 8 MB of items take up to a second, during which nobody else is answered. */
export const LARGE_BYTES = 256 * 1024
/** In this process. Each takes some 50 MB until it is answered. */
const LARGE_MAX = 2

/** Large bodies, few at a time: one of a tenant, so that none keeps the others from sending theirs. */
export class LargeBodies {
  readonly #tenants = new Set<string>()

  /** Lets one in, and gives back how to let it out again: once. */
  enter(tenant: string): () => void {
    if (this.#tenants.has(tenant)) throw refusal(1, 'one body', 'of this tenant', 'another')
    if (this.#tenants.size >= LARGE_MAX) throw refusal(LARGE_MAX, `${LARGE_MAX} bodies`, 'here', 'one more')
    this.#tenants.add(tenant)
    return () => this.#tenants.delete(tenant)
  }
}

const refusal = (limit: number, count: string, where: string, got: string): HoldfastError =>
  new HoldfastError(
    'rate_limited',
    `body: expected ${count} of more than ${LARGE_BYTES} bytes at a time ${where}, got ${got}`,
    { limit, retryAfter: 1 },
  )
