import { afterAll, beforeAll, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import * as p from '../../src/primitives/index.js'
import { refusal } from '../api/support/paths.js'

/** Left out in silence, a misspelt option makes a window of a minute where an hour was meant. */

let primitives: p.Primitives
beforeAll(async () => {
  primitives = await p.Primitives.connect({ redis: await freshRedis(), postgres: await freshDatabase() })
})
afterAll(() => primitives.close())

const payload = { parse: (value: unknown) => value } as never
const MAKERS: Record<string, (more: object) => unknown> = {
  Activity: (more) => new p.Activity(primitives, 'o', more),
  Cohorts: (more) => new p.Cohorts(primitives, 'o', { index: new p.OwnIndex(primitives, 'i'), ...more }),
  MappedIndex: (more) => new p.MappedIndex(primitives, 'o', more),
  BloomFilter: (more) => new p.BloomFilter(primitives, 'o', { capacity: 10, ...more }),
  TokenBucket: (more) => new p.TokenBucket(primitives, 'o', { capacity: 1, refillMs: 1, ...more }),
  Cell: (more) => new p.Cell(primitives, 'o', { ttlMs: 'none', ...more }),
  StateCell: (more) => new p.StateCell(primitives, 'o', { ttlMs: 'none', states: { a: [] }, ...more }),
  Envelopes: (more) => new p.Envelopes(primitives, 'o', { ttlMs: 'none', schemaVersion: 1, schema: payload, ...more }),
  Exposure: (more) => new p.Exposure(primitives, 'o', { variants: ['a', 'b'], ...more }),
  FeatureFlags: (more) => new p.FeatureFlags(primitives, more),
  SingleFlight: (more) => new p.SingleFlight(primitives, 'o', more),
  Idempotency: (more) => new p.Idempotency(primitives, 'o', more),
  Leases: (more) => new p.Leases(primitives, 'o', more),
  'the retries of Leases': (more) => new p.Leases(primitives, 'o', { retry: { times: 1, ...more } }),
  'a bucket of Limits': (more) =>
    new p.Limits(primitives, 'o', { a: { kind: 'bucket', capacity: 1, refillMs: 1, ...more } }),
  'a window of Limits': (more) =>
    new p.Limits(primitives, 'o', { a: { kind: 'fixed', limit: 1, windowMs: 1, ...more } }),
  'a sliding window of Limits': (more) =>
    new p.Limits(primitives, 'o', { a: { kind: 'sliding', limit: 1, windowMs: 1, ...more } }),
  Marker: (more) => new p.Marker(primitives, 'o', more),
  OtpLimiter: (more) => new p.OtpLimiter(primitives, 'o', more),
  PackedCounters: (more) =>
    new p.PackedCounters(primitives, 'o', { version: 1, fields: { a: 'u8' }, ttlMs: 'none', ...more }),
  Permissions: (more) => new p.Permissions(primitives, 'o', { version: 1, names: ['a'], ...more }),
  KeySampler: (more) => new p.KeySampler(primitives, more),
  FastSequence: (more) => new p.FastSequence(primitives, 'o', { ttlMs: 'none', ...more }),
  StrictSequence: (more) => new p.StrictSequence(primitives, 'o', more),
  ShardedCounter: (more) => new p.ShardedCounter(primitives, 'o', { ttlMs: 'none', ...more }),
  SlidingWindow: (more) => new p.SlidingWindow(primitives, 'o', more),
  OneTimeTokens: (more) => new p.OneTimeTokens(primitives, 'o', more),
  FixedWindow: (more) => new p.FixedWindow(primitives, 'o', more),
}

const made = <T>(name: string): T => MAKERS[name]?.({}) as T
const CALLS: Record<string, (wrong: never) => Promise<unknown>> = {
  'Activity.countActive': (wrong) => made<p.Activity>('Activity').countActive(wrong),
  'Activity.retention': (wrong) => made<p.Activity>('Activity').retention(wrong),
  'Cohorts.combine': (wrong) => {
    const cohorts = made<p.Cohorts<number>>('Cohorts')
    return cohorts.combine('c', 'and', [cohorts.named('a'), cohorts.named('b')] as never, wrong)
  },
  'TokenBucket.consume': (wrong) => made<p.TokenBucket>('TokenBucket').consume('a', wrong),
  'Cell.set': (wrong) => made<p.Cell>('Cell').set('a', 'b', wrong),
  'Cell.compareAndSet': (wrong) => made<p.Cell>('Cell').compareAndSet('a', 'b', 'c', wrong),
  'StateCell.start': (wrong) => made<p.StateCell<string>>('StateCell').start('a', 'a', wrong),
  'StateCell.transition': (wrong) => made<p.StateCell<string>>('StateCell').transition('a', 'a', wrong),
  'Envelopes.create': (wrong) => made<p.Envelopes<unknown>>('Envelopes').create('a', { state: 'a', payload: 1 }, wrong),
  'what Envelopes.create begins with': (wrong) => made<p.Envelopes<unknown>>('Envelopes').create('a', wrong),
  'Envelopes.update': (wrong) => made<p.Envelopes<unknown>>('Envelopes').update('a', () => null, wrong),
  'FeatureFlags.history': (wrong) => made<p.FeatureFlags>('FeatureFlags').history(wrong),
  'SingleFlight.get': (wrong) => made<p.SingleFlight>('SingleFlight').get('a', async () => 1, wrong),
  'Idempotency.tryClaim': (wrong) => made<p.Idempotency>('Idempotency').tryClaim('a', wrong),
  'Idempotency.run': (wrong) => made<p.Idempotency>('Idempotency').run('a', wrong, async () => 1),
  'Idempotency.fail': (wrong) => made<p.Idempotency>('Idempotency').fail('a', 'b', wrong),
  'Leases.acquire': (wrong) => made<p.Leases>('Leases').acquire('a', wrong),
  'Limits.consume': (wrong) => made<p.Limits<'a'>>('a bucket of Limits').consume('a', wrong),
  'Limits.reset': (wrong) => made<p.Limits<'a'>>('a bucket of Limits').reset('a', wrong),
  'Marker.tryClaim': (wrong) => made<p.Marker>('Marker').tryClaim('a', wrong),
  'OtpLimiter.attempt': (wrong) => made<p.OtpLimiter>('OtpLimiter').attempt('+4917123456', wrong),
  'PackedCounters.increment': (wrong) =>
    made<p.PackedCounters<{ a: 'u8' }>>('PackedCounters').increment('a', { a: 1 }, wrong),
  'ShardedCounter.add': (wrong) => made<p.ShardedCounter>('ShardedCounter').add('a', wrong),
  'ShardedCounter.read': (wrong) => made<p.ShardedCounter>('ShardedCounter').read('a', wrong),
  'ShardedCounter.approximate': (wrong) => made<p.ShardedCounter>('ShardedCounter').approximate('a', wrong),
  'ShardedCounter.reset': (wrong) => made<p.ShardedCounter>('ShardedCounter').reset('a', wrong),
  'SlidingWindow.add': (wrong) => made<p.SlidingWindow>('SlidingWindow').add('a', wrong),
  'OneTimeTokens.issue': (wrong) => made<p.OneTimeTokens>('OneTimeTokens').issue(wrong),
  'OneTimeTokens.consume': (wrong) => made<p.OneTimeTokens>('OneTimeTokens').consume('a', wrong),
  'OneTimeTokens.history': (wrong) => made<p.OneTimeTokens>('OneTimeTokens').history('a', wrong),
  'OneTimeTokens.prune': (wrong) => made<p.OneTimeTokens>('OneTimeTokens').prune(wrong),
  'FixedWindow.add': (wrong) => made<p.FixedWindow>('FixedWindow').add('a', wrong),
  'FixedWindow.peek': (wrong) => made<p.FixedWindow>('FixedWindow').peek('a', wrong),
  'Primitives.connect': (wrong) => p.Primitives.connect(wrong),
}

const WRONG = { another: 1 }

it.each(Object.keys(MAKERS))('%s takes what it has, and refuses a name that it does not have', async (name) => {
  expect(() => MAKERS[name]?.({})).not.toThrow()
  const { code, message } = await refusal((async () => MAKERS[name]?.(WRONG))())
  expect(code).toBe('invalid_argument')
  expect(message).toMatch(/: expected only .*, got another$/)
})

it.each(Object.keys(CALLS))('%s refuses a name that it does not have', async (name) => {
  const { code, message } = await refusal((CALLS[name] as (wrong: object) => Promise<unknown>)(WRONG))
  expect(code).toBe('invalid_argument')
  expect(message).toMatch(/: expected only .*, got another$/)
})

it('says what was most likely meant', async () => {
  const wrong = { windowMS: 3_600_000 } as p.FixedWindowOptions
  const { message } = await refusal((async () => new p.FixedWindow(primitives, 'o', wrong))())
  expect(message).toBe('options: expected only windowMs, bufferMs, got windowMS: did you mean windowMs?')
})
