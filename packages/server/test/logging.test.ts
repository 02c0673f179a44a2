import { HoldfastError } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { createLogger } from '../src/logging/index.js'

/** Everything in here must never be found in a log. */
const HIDDEN = ['hunter2', 'hf_live_abcdef', 'alice', 'user_42', 'order-17', 'eyJhbGciOi']

function logged(write: (logger: ReturnType<typeof createLogger>) => void, level = 'trace'): Record<string, unknown>[] {
  const lines: string[] = []
  write(createLogger(level, { write: (line: string) => void lines.push(line) }))
  const text = lines.join('')
  for (const hidden of HIDDEN) expect(text).not.toContain(hidden)
  return lines.map((line) => JSON.parse(line))
}

describe('a line of log', () => {
  it('is JSON with time, level, event and facts', () => {
    const [line] = logged((logger) => logger.warn({ dependency: 'redis', attempts: 3, code: 'unavailable' }, 'away'))
    expect(line).toEqual({
      level: 'warn',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      event: 'away',
      dependency: 'redis',
      attempts: 3,
      code: 'unavailable',
    })
  })

  it('is not written below its level', () => {
    expect(logged((logger) => logger.info('quiet'), 'warn')).toEqual([])
  })

  it.each([
    [
      'headers',
      { headers: { authorization: 'Bearer hf_live_abcdef', cookie: 'session=hunter2', accept: 'text/html' } },
    ],
    [
      'named secrets',
      { password: 'hunter2', redisPassword: 'hunter2', apiKey: 'hf_live_abcdef', accessToken: 'eyJhbGciOi' },
    ],
    ['credentials in a URL', { reason: 'connect to redis://alice:hunter2@10.0.0.1:6379 failed' }],
    ['a password alone in a URL', { reason: 'redis://:hunter2@10.0.0.1:6379' }],
    ['a query string', { url: '/v1/events?token=hunter2&user=alice', to: 'https://host/x?token=hunter2' }],
    ['who it is about', { wallet: 'user_42', userId: 'alice', key: 'order-17', 'idempotency-key': 'order-17' }],
    ['what they said', { metadata: { name: 'alice' }, body: 'alice', email: 'alice@example.com' }],
    ['deep inside', { a: [{ b: { authorization: 'Basic hunter2' } }], c: 'Bearer eyJhbGciOi' }],
  ])('hides %s', (_what, facts) => {
    const [line] = logged((logger) => logger.info(facts, 'event'))
    expect(line).toMatchObject({ event: 'event' })
  })

  it('hides in its text as well, and in what a child logger carries', () => {
    logged((logger) => {
      logger.info('could not reach postgres://alice:hunter2@db:5432/ledger')
      logger.child({ wallet: 'user_42', token: 'hunter2' }).info('event')
    })
  })

  it('keeps of an error what helps, and never its cause: that quotes values', () => {
    const cause = new Error('Key (key)=(order-17) already exists')
    const error = new HoldfastError(
      'unavailable',
      'lost redis://alice:hunter2@10.0.0.1',
      { wallet: 'user_42' },
      { cause },
    )
    const [line] = logged((logger) => logger.error({ err: error }, 'request_failed'))
    expect(line?.err).toEqual({
      type: 'HoldfastError',
      code: 'unavailable',
      message: 'lost redis://[redacted]@10.0.0.1',
      stack: expect.stringContaining('logging.test.ts'),
    })
    expect(logged((logger) => logger.error(error))).toHaveLength(1)
  })

  it('gives the same pseudonym to the same wallet, so that lines can be put together', () => {
    const lines = logged((logger) => {
      logger.info({ wallet: 'user_42' }, 'a')
      logger.info({ wallet: 'user_42' }, 'b')
      logger.info({ wallet: 'alice' }, 'c')
    })
    expect(lines[0]?.wallet).toBe(lines[1]?.wallet)
    expect(lines[0]?.wallet).not.toBe(lines[2]?.wallet)
  })

  it('survives facts that contain themselves', () => {
    const facts: Record<string, unknown> = { name: 'loop' }
    facts.self = facts
    expect(logged((logger) => logger.info(facts, 'event'))).toHaveLength(1)
  })
})
