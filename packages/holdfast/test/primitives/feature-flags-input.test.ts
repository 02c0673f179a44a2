import { FeatureFlags, type Primitives } from 'holdfast/primitives'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { type On, onSingle } from './support/topologies.js'

const author = { by: 'alice' }

describe('flags that could not be', () => {
  let on: On
  let database: string
  beforeAll(async () => {
    database = await freshDatabase()
    on = await onSingle({ postgres: database })
  })
  afterAll(() => on.close())
  const rule = (when: unknown, serve: unknown = true) => ({ on: true, rules: [{ when, serve }] })
  const many = (length: number, one: unknown) => Array.from({ length }, () => one)
  const condition = { attribute: 'a', test: 'exists' }

  it.each<[string, unknown, string]>([
    ['nothing', undefined, 'flag: expected an object, got nothing'],
    ['no state', {}, 'on: expected true or false, got nothing'],
    ['a word of its own', { on: true, rule: [] }, 'flag: expected only on, percentage, rules, description'],
    ['a percentage above 100', { on: true, percentage: 100.01 }, 'percentage: expected a percentage from 0 to 100'],
    ['a finer percentage', { on: true, percentage: 0.001 }, 'in steps of 0.01, got 0.001'],
    ['a percentage that is null', { on: true, percentage: null }, 'percentage: expected a percentage from 0 to 100'],
    ['rules that are null', { on: true, rules: null }, 'rules: expected an array, got null'],
    ['a description that is null', { on: true, description: null }, 'description: expected a string, got null'],
    ['no number', { on: true, percentage: Number.NaN }, 'percentage: expected a percentage'],
    ['a percentage in words', { on: true, percentage: '50' }, 'got a string of 2 characters'],
    ['rules that are no list', { on: true, rules: {} }, 'rules: expected an array, got an object'],
    ['too many rules', { on: true, rules: many(33, {}) }, 'rules: expected 0 to 32 of them, got 33'],
    ['a rule about nobody', rule([]), 'rules[0].when: expected 1 to 16 of them, got 0'],
    ['too many conditions', rule(many(17, condition)), 'rules[0].when: expected 1 to 16 of them, got 17'],
    ['a rule without an answer', rule([condition], null), 'rules[0].serve: expected true, false or a percentage'],
    ['a test that is none', rule([{ ...condition, test: 'like' }]), "rules[0].when[0].test: expected 'equals' or"],
    ['an attribute with blanks', rule([{ ...condition, attribute: 'a b' }]), 'rules[0].when[0].attribute: expected 1'],
    ['a value too many', rule([{ ...condition, value: 1 }]), 'rules[0].when[0].value: expected nothing'],
    ['no value', rule([{ ...condition, test: 'equals' }]), 'rules[0].when[0].value: expected a string, a number'],
    ['words for a number', rule([{ ...condition, test: 'atLeast', value: '5' }]), 'value: expected a number'],
    ['an endless number', rule([{ ...condition, test: 'atLeast', value: Infinity }]), 'value: expected a number'],
    ['an empty list', rule([{ ...condition, test: 'in', value: [] }]), 'value: expected 1 to 100 of them, got 0'],
    ['a long list', rule([{ ...condition, test: 'in', value: many(101, 1) }]), 'expected 1 to 100 of them, got 101'],
    ['a long description', { on: true, description: 'x'.repeat(501) }, 'description: expected 1 to 500 characters'],
  ])('are refused before anything is asked: %s', async (_, flag, message) => {
    const failure = await refusal(() => new FeatureFlags(on.primitives).put('a', flag as never, author))
    expect(failure).toMatchObject({ code: 'invalid_argument', message: expect.stringContaining(message) })
  })

  it.each<[string, (flags: FeatureFlags, primitives: Primitives) => unknown, string]>([
    ['a name with capitals', (flags) => flags.put('A', { on: true }, author), 'name: expected 1 to 64 characters'],
    ['a change to null', (flags) => flags.change('a', { percentage: null as never }, author), 'percentage: expected a'],
    ['a state that is null', (flags) => flags.change('a', { on: null as never }, author), 'on: expected true or false'],
    ['no author', (flags) => flags.kill('a', {} as never), 'by: expected a string, got nothing'],
    ['a version of minus one', (flags) => flags.kill('a', { by: 'x', version: -1 }), 'version: expected an integer'],
    ['an empty subject', (flags) => flags.isOn('a', ''), 'subject: expected 1 to 1024 characters'],
    ['a subject that is none', (flags) => flags.isOn('a', 5 as never), 'subject: expected a string, got a number'],
    ['no attributes', (flags) => flags.isOn('a', 'u', null as never), 'attributes: expected an object, got null'],
    ['half a page', (flags) => flags.history({ limit: 0.5 }), 'limit: expected an integer from 1 to 1000'],
    [
      'a last known time that is over between two looks',
      (_, primitives) => new FeatureFlags(primitives, { stalenessMs: 1_000, lastKnownForMs: 999 }),
      'lastKnownForMs: expected an integer from 1000',
    ],
    [
      'a bound of a moment',
      (_, primitives) => new FeatureFlags(primitives, { stalenessMs: 1 }),
      'stalenessMs: expected an integer from 80',
    ],
  ])('neither is %s', async (_, call, message) => {
    const failure = await refusal(() => call(new FeatureFlags(on.primitives), on.primitives))
    expect(failure).toMatchObject({ code: 'invalid_argument', message: expect.stringContaining(message) })
  })

  it('needs a database', async () => {
    const without = await onSingle()
    expect(() => new FeatureFlags(without.primitives)).toThrow('postgres: expected a connection, since what flags are')
    await without.close()
  })

  it('has an end to how many and how long they are', async () => {
    const flags = new FeatureFlags(on.primitives)
    const value = Array.from({ length: 100 }, (_, n) => `${n}`.padEnd(255, 'x'))
    const long = { on: true, rules: many(32, { when: [{ attribute: 'a', test: 'in', value }], serve: true }) }
    await flags.put('long', long as never, author)
    await expect(flags.put('longer', long as never, author)).rejects.toMatchObject({
      code: 'invalid_argument',
      limitBytes: 1_048_576,
    })
    // What is there can still be made less of.
    expect((await flags.put('long', { on: true }, author)).result).toBe('changed')
    const client = new pg.Client(database)
    await client.connect()
    await client.query(`INSERT INTO holdfast.flags SELECT f.tenant, 'f' || n, f.version, f.definition, false, 0, 0
                        FROM holdfast.flags f, generate_series(1, 999) n WHERE f.name = 'long'`)
    await client.end()
    await expect(flags.put('more', { on: true }, author)).rejects.toMatchObject({
      code: 'invalid_argument',
      limit: 1_000,
    })
    expect((await flags.put('f1', { on: false }, author)).result).toBe('changed')
  })
})

async function refusal(call: () => unknown): Promise<unknown> {
  try {
    await call()
  } catch (error) {
    return error
  }
  throw new Error('It was taken')
}
