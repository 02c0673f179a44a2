import { inspect } from 'node:util'
import { Activity, Cohorts, FixedWindow, Marker, Primitives } from 'holdfast/primitives'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type On, onSingle, SECRET } from './support/topologies.js'

describe('what is made of keys', () => {
  let on: On
  beforeAll(async () => {
    on = await onSingle()
  })
  afterAll(() => on.close())

  it('shows the secret to nobody who logs it, or makes JSON of it', async () => {
    const opened = new Activity(on.primitives, 'opened')
    const cohorts = new Cohorts(on.primitives, 'weekly', { index: opened.index })
    const made = await cohorts.combine('both', 'or', [opened.on('2026-07-01'), opened.on('2026-07-02')])
    const bytes = [...Buffer.from(SECRET)]
    for (const value of [on.primitives, opened, made, new FixedWindow(on.primitives, 'login')]) {
      const shown = `${inspect(value, { depth: 10 })} ${JSON.stringify(value)}`
      expect(shown).not.toContain(SECRET)
      expect(shown).not.toContain(bytes.join(','))
      expect(shown).not.toContain(bytes.map((byte) => byte.toString(16)).join(' '))
    }
  })

  it('is the same for the same secret as text and as bytes', async () => {
    const bytes = await Primitives.connect({ redis: on.redis, secret: Buffer.from(SECRET) })
    const at = new Date()
    await new FixedWindow(on.primitives, 'bytes').add('user', { at })
    expect((await new FixedWindow(bytes, 'bytes').peek('user', { at })).count).toBe(1)
    await bytes.close()
  })

  it.each<[string, (primitives: Primitives) => unknown, string]>([
    ['a number', (p) => new FixedWindow(p, 'o').add(491712345678 as never), 'scope: expected a string or some strings'],
    ['one of several', (p) => new FixedWindow(p, 'o').add([491712345678] as never), 'scope: expected a string, got a'],
    ['a big one', (p) => new FixedWindow(p, 'o').add(491712345678n as never), 'got a bigint'],
    [
      'a token',
      (p) => new Marker(p, 'o', { ttlMs: 5 }).release('a', 491712345678 as never),
      'token: expected a string',
    ],
    ['an operation', (p) => new FixedWindow(p, 491712345678 as never), 'operation: expected a string, got a number'],
    ['a tenant', (p) => p.forTenant('491712345678@sms'), 'got a string of 16 characters'],
  ])('is refused without a word of %s', async (_, act, message) => {
    const refused = await Promise.resolve(on.primitives)
      .then(act)
      .catch((error: unknown) => error)
    expect(refused).toMatchObject({ code: 'invalid_argument', message: expect.stringContaining(message) })
    expect(inspect(refused)).not.toContain('49171')
  })

  it.each<[string, unknown, string]>([
    ['a hole', new Array(1), 'scope: expected a string, got nothing'],
    ['what is far too long', 'x'.repeat(2_000_000), 'scope: expected 1 to 1024 characters, got 2000000 characters'],
    [
      'what is too long',
      '\u{1f600}'.repeat(25).padEnd(1_050),
      'scope: expected 1 to 1024 characters, got 1025 characters',
    ],
  ])('is not made of %s', async (_, scope, message) => {
    await expect(new FixedWindow(on.primitives, 'o').add(scope as never)).rejects.toThrow(message)
  })

  it('counts characters, not their halves', async () => {
    expect((await new FixedWindow(on.primitives, 'o').add('\u{1f600}'.repeat(1_024))).count).toBe(1)
  })

  it.each([Number.NaN, -1, Number.POSITIVE_INFINITY])('are not made at a time like %d', async (now) => {
    const other = await Primitives.connect({ redis: on.redis, secret: SECRET, now: () => now })
    await expect(new FixedWindow(other, 'o').add('user')).rejects.toThrow('now: expected milliseconds of the years')
    await other.close()
  })
})
