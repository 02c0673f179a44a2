import { OtpLimiter, type OtpLimiterOptions, type Primitives } from 'holdfast/primitives'
import { describe, expect, it } from 'vitest'
import { onSingle } from './support/topologies.js'

describe('phone numbers', () => {
  const NUMBER = '+491712345678'
  const NORTH = '+12125550100'
  it.each<[string, string, OtpLimiterOptions, string]>([
    ['as it is', '+491712345678', {}, NUMBER],
    ['with blanks, dots and dashes', ' +49 171.234-56–78 ', {}, NUMBER],
    ['with brackets', '(+49) (171) 2345678', {}, NUMBER],
    ['with the 0 of the country in brackets', '+49 (0)171 2345678', {}, NUMBER],
    ['and that after 00', '0049 (0) 171 2345678', {}, NUMBER],
    ['with 00', '0049 171 2345678', {}, NUMBER],
    ['within the country', '0171/2345678', { country: '49' }, NUMBER],
    ['without its 0', '171 2345678', { country: '49' }, NUMBER],
    ['with marks that nobody sees', '\u202a+49\u00a0171\u00a02345678\u202c', {}, NUMBER],
    ['in wide digits', '＋４９１７１２３４５６７８', {}, NUMBER],
    ['with the country and its 0', '+49 0171 2345678', { country: '49' }, NUMBER],
    ['with both, in brackets', '0049 (0171) 2345678', { country: '49' }, NUMBER],
    ['with two of them', '+49 (0)(0)171 2345678', { country: '49' }, NUMBER],
    ['with the country and its 1', '+1 (1) 212 555 0100', { country: '1' }, NORTH],
    ['that begins as the prefix does', '+7 800 555 35 35', { country: '7', trunkPrefix: '8' }, '+78005553535'],
    ['with a 0 that belongs to it', '+39 06 1234 5678', { country: '39', trunkPrefix: '' }, '+390612345678'],
    ['of another country', '+1 212 555 0100', { country: '49' }, NORTH],
    ['in North America', '(212) 555-0100', { country: '1' }, NORTH],
    ['with its 1', '1-212-555-0100', { country: '1' }, NORTH],
    ['dialled from there', '011 49 171 2345678', { country: '1' }, NUMBER],
    ['where nothing is dialled first', '06 1234 5678', { country: '39', trunkPrefix: '' }, '+390612345678'],
  ])('takes a number %s', async (_, phone, options, expected) => {
    await withSingle(async (primitives) => {
      expect(new OtpLimiter(primitives, 'login', options).normalise(phone)).toBe(expected)
    })
  })

  it('counts all spellings of a number of any country together, and other numbers apart', async () => {
    await withSingle(async (primitives) => {
      const limiter = new OtpLimiter(primitives, 'login', { country: '49' })
      for (const phone of ['+44 7700 900123', '+44 07700 900123', '+44 (0)07700 900123', '0044 00 7700 900123']) {
        await limiter.attempt(phone)
      }
      expect((await limiter.peek('+447700900123')).attemptsLeft).toBe(1)
      expect((await limiter.peek('+447700900124')).attemptsLeft).toBe(5)
      // Zeros within a number are digits like others, also right after what only looks like a code.
      expect((await limiter.peek('+4470900123')).attemptsLeft).toBe(5)
      await limiter.attempt('+40 212 345678')
      expect((await limiter.peek('+4 212 345678')).attemptsLeft).toBe(5)
      await limiter.attempt('+353 1 234 5678')
      expect((await limiter.peek('+353 01 234 5678')).attemptsLeft).toBe(4)
    })
  })

  it.each<[string, unknown, OtpLimiterOptions, string]>([
    ['nothing', '', {}, 'phone: expected 1 to 64 characters'],
    ['no text', 491712345678, {}, 'phone: expected a string, got a number'],
    ['a name', 'anna@example.com', {}, 'phone: expected a phone number, got a string of 16 characters that is none'],
    ['letters', '+1 800 FLOWERS', {}, 'phone: expected a phone number'],
    ['an extension', '+49 171 2345678 x12', {}, 'phone: expected a phone number'],
    ['a + in the middle', '0049+1712345678', {}, 'phone: expected a phone number'],
    ['other digits', '+٤٩١٧١٢٣٤٥٦٧٨', {}, 'phone: expected a phone number'],
    ['no country', '0171 2345678', {}, "phone: expected a number with + and its country's code, got one without"],
    ['too few digits', '+49 171', {}, "phone: expected 7 to 15 digits with the country's code, got 5"],
    ['too many digits', '+49 171 23456789012', {}, "phone: expected 7 to 15 digits with the country's code, got 16"],
    ['a country that begins with 0', '+0171 2345678', {}, 'got 11 with a 0 first'],
  ])('refuses %s', async (_, phone, options, message) => {
    await withSingle(async (primitives) => {
      const limiter = new OtpLimiter(primitives, 'login', options)
      await expect(limiter.attempt(phone as string)).rejects.toThrow(message)
      await expect(limiter.attempt(phone as string)).rejects.toMatchObject({ code: 'invalid_argument' })
    })
  })
})

async function withSingle(use: (primitives: Primitives) => Promise<void>): Promise<void> {
  const on = await onSingle()
  try {
    await use(on.primitives)
  } finally {
    await on.close()
  }
}
