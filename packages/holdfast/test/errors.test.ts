import { STATUS_CODES } from 'node:http'
import { fileURLToPath } from 'node:url'
import { ERRORS, type ErrorCode, HoldfastError } from 'holdfast'
import { describe, expect, it } from 'vitest'

const rows = Object.entries(ERRORS) as [ErrorCode, (typeof ERRORS)[ErrorCode]][]

/** What clients and guides rely on. Codes may be added to the table; none of these may go, or change its status. */
const PINNED: Record<number, readonly ErrorCode[]> = {
  400: ['invalid_amount', 'invalid_argument', 'key_required'],
  401: ['unauthenticated'],
  403: ['forbidden'],
  404: ['wallet_not_found', 'hold_not_found', 'session_not_found', 'sale_not_found', 'checkout_not_found'],
  409: [
    'insufficient_funds',
    'hold_exceeded',
    'refund_exceeded',
    'wallet_exists',
    'wallet_frozen',
    'wallet_closed',
    'wallet_not_empty',
    'hold_closed',
    'sold_out',
    'user_limit',
    'sale_not_active',
    'duplicate_item',
  ],
  410: ['hold_expired', 'checkout_expired'],
  413: ['too_large'],
  422: ['idempotency_conflict'],
  423: ['lock_busy'],
  429: ['rate_limited'],
  503: ['unavailable'],
  504: ['timeout', 'aborted'],
}
const RETRYABLE: readonly ErrorCode[] = [
  'claim_lost',
  'lock_busy',
  'lock_lost',
  'rate_limited',
  'unavailable',
  'load_failed',
  'reconcile_required',
  'timeout',
  'aborted',
]

describe('the table of errors', () => {
  it('has every pinned code with its status', () => {
    for (const [status, codes] of Object.entries(PINNED)) {
      for (const code of codes) expect([code, ERRORS[code]?.status]).toEqual([code, Number(status)])
    }
  })

  it('calls retryable exactly what the same key is safe and of use for', () => {
    expect(rows.filter(([, { retryable }]) => retryable).map(([code]) => code)).toEqual(RETRYABLE)
  })

  it('stands in the order of the status, and says of each code what it means and what to do', () => {
    const statuses = rows.map(([, { status }]) => status)
    expect(statuses).toEqual([...statuses].sort((a, b) => a - b))
    for (const [code, { status, meaning, action }] of rows) {
      expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/)
      expect(STATUS_CODES[status]).toBeDefined()
      expect(meaning).toMatch(/^[A-Z].{20,}\.$/)
      expect(action).toMatch(/^[A-Z].{10,}\.$/)
    }
  })

  // `npx vitest run packages/holdfast/test/errors.test.ts --update` writes the page.
  it('is what docs/reference/errors.md says', async () => {
    const page = fileURLToPath(new URL('../../../docs/reference/errors.md', import.meta.url))
    await expect(errorsPage()).toMatchFileSnapshot(page)
  })
})

describe('HoldfastError', () => {
  it('takes status and retryable from the table, and carries the facts as properties', () => {
    const error = new HoldfastError('insufficient_funds', 'expected 100 or more, got 42', { available: 42, left: null })
    expect(error).toBeInstanceOf(Error)
    expect(error).toMatchObject({
      name: 'HoldfastError',
      code: 'insufficient_funds',
      status: 409,
      retryable: false,
      message: 'expected 100 or more, got 42',
      available: 42,
      left: null,
      facts: { available: 42, left: null },
    })
  })

  it('says what the code means when it is given no message', () => {
    expect(new HoldfastError('timeout').message).toBe(ERRORS.timeout.meaning)
  })

  it('does not let a fact take the place of what it is decided by', () => {
    const error = new HoldfastError('timeout', undefined, {
      code: 'sold_out',
      status: 200,
      message: 'fine',
      stack: 'none',
    })
    expect([error.code, error.status, error.message]).toEqual(['timeout', 504, ERRORS.timeout.meaning])
    expect(error.stack).not.toBe('none')
  })

  it('keeps its cause', () => {
    const cause = new Error('deep down')
    expect(new HoldfastError('unavailable', undefined, {}, { cause }).cause).toBe(cause)
  })

  it('is recognised, by code if wanted', () => {
    const error: unknown = new HoldfastError('sold_out')
    expect(HoldfastError.is(error)).toBe(true)
    expect(HoldfastError.is(error, 'sold_out')).toBe(true)
    expect(HoldfastError.is(error, 'timeout')).toBe(false)
    expect(HoldfastError.is(new Error('sold_out'))).toBe(false)
  })
})

function errorsPage(): string {
  const yesNo = (value: boolean) => (value ? 'yes' : 'no')
  const lines = [
    '# Errors',
    '',
    'Written from `packages/holdfast/src/errors/table.ts`; a test keeps the two in step.',
    '',
    'The library throws a `HoldfastError` with `code`, `status`, `retryable`, and what else is known as properties:',
    '',
    '```ts',
    'try {',
    "  await wallet.debit(100, { key: 'order-17' })",
    '} catch (error) {',
    "  if (HoldfastError.is(error, 'insufficient_funds')) console.log('only', error.available, 'left')",
    '  else throw error',
    '}',
    '```',
    '',
    'The server answers with the same as `application/problem+json` (RFC 9457), the facts beside `code`. From status 500 on these are only the numbers',
    'among them, and `detail` says what the code means: others may name what is inside.',
    '',
    '```json',
    JSON.stringify(
      {
        available: 42,
        type: 'urn:holdfast:error:insufficient_funds',
        title: 'insufficient funds',
        status: 409,
        detail: ERRORS.insufficient_funds.meaning,
        code: 'insufficient_funds',
        retryable: false,
        requestId: '0c38ba9c-2c61-4654-a858-727ecc4c1aed',
        docs: '/errors/insufficient_funds',
      },
      null,
      2,
    ),
    '```',
    '',
    'Decide by `code`: `detail` is for people and may change. A `retryable` error may be answered otherwise when the same call is',
    'made again **with the same key**; if the first one was done after all, its answer comes again.',
    '',
    '| status | code | retryable |',
    '|---|---|---|',
    ...rows.map(([code, { status, retryable }]) => `| ${status} | [\`${code}\`](#${code}) | ${yesNo(retryable)} |`),
  ]
  for (const [code, { status, retryable, meaning, action }] of rows) {
    lines.push(
      '',
      `## ${code}`,
      '',
      `Status ${status}, ${retryable ? 'retryable' : 'not retryable'}. ${meaning}`,
      '',
      action,
    )
  }
  return `${lines.join('\n')}\n`
}
