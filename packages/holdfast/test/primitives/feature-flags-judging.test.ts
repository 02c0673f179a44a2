import fc from 'fast-check'
import type { FlagAttributes, FlagCondition } from 'holdfast/primitives'
import { describe, expect, it } from 'vitest'
import { checkDefinition } from '../../src/primitives/flags/check.js'
import type { FlagFacts } from '../../src/primitives/flags/definition.js'
import { judge, placeOf } from '../../src/primitives/flags/judge.js'

const flag = (given: Partial<FlagFacts> = {}): FlagFacts => ({
  name: 'new-checkout',
  version: 1,
  killed: false,
  on: true,
  percentage: 100,
  rules: [],
  ...given,
})
const german: FlagCondition = { attribute: 'country', test: 'equals', value: 'DE' }

describe('what a flag answers', () => {
  it('serialization: where a subject stands is the same for ever', () => {
    // Written down, so that no version can give another answer: whoever has a feature today must have it tomorrow.
    expect(placeOf('new-checkout', 'user-17')).toBe(84.63)
    expect(placeOf('new-checkout', 'user-18')).toBe(14.26)
    expect(placeOf('other', 'user-17')).toBe(14.63)
    expect(placeOf('new-checkout', 'Zoë 🦊')).toBe(3.95)
  })

  it('model: a larger percentage only adds subjects, and 0 and 100 are nobody and everybody', () => {
    const hundredths = fc.integer({ min: 0, max: 10_000 })
    const subject = fc.string({ minLength: 1 })
    fc.assert(
      fc.property(subject, hundredths, hundredths, (subject, a, b) => {
        const [less, more] = [Math.min(a, b) / 100, Math.max(a, b) / 100]
        const isOn = (percentage: number) => judge(flag({ percentage }), subject, {}).on
        expect(isOn(less) && !isOn(more)).toBe(false)
        expect([isOn(0), isOn(100)]).toEqual([false, true])
        expect(isOn(more)).toBe(placeOf('new-checkout', subject) < more)
      }),
      { numRuns: 500 },
    )
  })

  it('hits the percentage that it is given, down to a hundredth, each flag with subjects of its own', () => {
    const subjects = Array.from({ length: 20_000 }, (_, n) => `user-${n}`)
    const shareOf = (name: string, percentage: number) =>
      subjects.filter((subject) => judge(flag({ name, percentage }), subject, {}).on)
    // Five standard deviations of a fair draw.
    for (const percentage of [0.01, 1, 12.5, 50, 99.99]) {
      const share = percentage / 100
      const spread = 5 * Math.sqrt(subjects.length * share * (1 - share))
      expect(Math.abs(shareOf('a', percentage).length - subjects.length * share)).toBeLessThan(spread)
    }
    const early = new Set(shareOf('a', 10))
    const both = shareOf('b', 10).filter((subject) => early.has(subject))
    expect(Math.abs(both.length - 200)).toBeLessThan(5 * Math.sqrt(200))
  })

  it('wrong state: killed beats everything, off all but that, the first rule that applies the percentage', () => {
    const rules = [
      { when: [german], serve: true },
      { when: [{ attribute: 'country', test: 'exists' }] as const, serve: false },
    ]
    const all = { percentage: 100, rules }
    expect(judge(flag({ ...all, killed: true }), 'u', { country: 'DE' })).toMatchObject({
      on: false,
      because: 'killed',
    })
    expect(judge(flag({ ...all, killed: true, on: false }), 'u', {})).toMatchObject({ because: 'killed' })
    expect(judge(flag({ ...all, on: false }), 'u', { country: 'DE' })).toMatchObject({ on: false, because: 'off' })
    expect(judge(flag({ rules, percentage: 0 }), 'u', { country: 'DE' })).toMatchObject({
      on: true,
      because: 'rule',
      rule: 0,
    })
    expect(judge(flag(all), 'u', { country: 'FR' })).toMatchObject({ on: false, because: 'rule', rule: 1 })
    expect(judge(flag(all), 'u', {})).toEqual({
      on: true,
      because: 'percentage',
      rule: null,
      percentage: 100,
      place: null,
    })
  })

  it('gives a rule a percentage of its own, over the same places', () => {
    const half = flag({ percentage: 0, rules: [{ when: [german], serve: 50 }] })
    const place = placeOf('new-checkout', 'user-17')
    expect(judge(half, 'user-17', { country: 'DE' })).toEqual({
      on: place < 50,
      because: 'rule',
      rule: 0,
      percentage: 50,
      place,
    })
    expect(judge(half, 'user-17', { country: 'FR' }).on).toBe(false)
    // Nobody in particular is in no part of them.
    expect(judge(half, undefined, { country: 'DE' })).toMatchObject({ on: false, percentage: 50, place: null })
  })

  it.each<[FlagCondition['test'], unknown, FlagAttributes, boolean]>([
    ['equals', 'DE', { a: 'DE' }, true],
    ['equals', 'DE', { a: 'de' }, false],
    ['equals', 5, { a: '5' }, false],
    ['equals', true, { a: true }, true],
    ['notEquals', 'DE', { a: 'FR' }, true],
    ['notEquals', 'DE', {}, false],
    ['in', ['DE', 7], { a: 7 }, true],
    ['in', ['DE', 7], { a: '7' }, false],
    ['notIn', ['DE'], { a: 'FR' }, true],
    ['notIn', ['DE'], { a: null }, false],
    ['lessThan', 18, { a: 17.9 }, true],
    ['lessThan', 18, { a: 18 }, false],
    ['lessThan', 18, { a: '17' }, false],
    ['atMost', 18, { a: 18 }, true],
    ['moreThan', -1, { a: 0 }, true],
    ['moreThan', 0, { a: Number.NaN }, false],
    ['atLeast', 18, { a: 18 }, true],
    ['atLeast', 18, { a: true }, false],
    ['startsWith', 'beta-', { a: 'beta-7' }, true],
    ['startsWith', 'beta-', { a: 7 }, false],
    ['endsWith', '@example.com', { a: 'x@example.com' }, true],
    ['endsWith', '@example.com', { a: 'x@example.org' }, false],
    ['exists', undefined, { a: '' }, true],
    ['exists', undefined, { a: undefined }, false],
    ['missing', undefined, {}, true],
    ['missing', undefined, { a: 0 }, false],
  ])('%s %j of %j: %s', (test, value, attributes, holds) => {
    const rule = { when: [{ attribute: 'a', test, ...(value !== undefined && { value }) }], serve: true }
    const { rules } = checkDefinition({ on: true, percentage: 0, rules: [rule] })
    expect(judge(flag({ percentage: 0, rules }), 'u', attributes).on).toBe(holds)
  })

  it('does not take what every object has for an attribute', () => {
    const rules = [{ when: [{ attribute: 'constructor', test: 'exists' } as const], serve: true }]
    expect(judge(flag({ percentage: 0, rules }), 'u', {}).on).toBe(false)
  })
})
