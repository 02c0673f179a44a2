import { ERRORS, type ErrorCode } from './table.js'

export { ERRORS, type ErrorCode } from './table.js'

/** What else is known: amounts, limits, ids. Never a secret and never personal data: facts reach logs and HTTP answers. */
export type Facts = Record<string, string | number | boolean | null>

/** The only error that leaves the library. `code` decides; the facts stand as properties of their own beside it. */
export class HoldfastError extends Error {
  override readonly name = 'HoldfastError'
  readonly code: ErrorCode
  readonly status: number
  readonly retryable: boolean
  readonly facts: Facts
  readonly [fact: string]: unknown

  constructor(code: ErrorCode, message?: string, facts: Facts = {}, options?: ErrorOptions) {
    super(message ?? ERRORS[code].meaning, options)
    this.code = code
    this.status = ERRORS[code].status
    this.retryable = ERRORS[code].retryable
    this.facts = facts
    for (const [name, value] of Object.entries(facts)) {
      if (!(name in this)) Object.defineProperty(this, name, { value, enumerable: true })
    }
  }

  static is(error: unknown, code?: ErrorCode): error is HoldfastError {
    return error instanceof HoldfastError && (code === undefined || error.code === code)
  }
}
