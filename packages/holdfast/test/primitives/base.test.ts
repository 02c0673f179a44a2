/** What all primitives stand on: connecting, calls that go together, keys, and what is told of them. */
import { HoldfastError as OfWallets } from 'holdfast'
import {
  FeatureFlags,
  FixedWindow,
  GaplessSequence,
  HoldfastError,
  Idempotency,
  KeySampler,
  Leases,
  OneTimeTokens,
  Primitives,
  type PrimitivesOptions,
  StrictSequence,
} from 'holdfast/primitives'
import { Cluster, Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { emptyDatabase, freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Postgres } from '../../src/postgres/index.js'
import { note, tell } from '../../src/primitives/context.js'
import { checkSecret, KeySpace, keysOf, readPurpose } from '../../src/primitives/keys.js'
import { RedisConnection, RedisUnavailable, ScriptError } from '../../src/redis/index.js'
import { PATIENT } from './support/patient.js'
import { withRunner } from './support/runners.js'
import { type On, onSingle, SECRET, TOPOLOGIES } from './support/topologies.js'

const at = new Date('2026-07-02T14:30:00Z')

describe('Primitives.connect', () => {
  it.each<[string, unknown, string]>([
    ['no options', undefined, 'redis: expected a URL, options or an ioredis client, got nothing'],
    ['a URL in the place of options', 'redis://127.0.0.1', 'options: expected an object'],
    [
      'no secret, and no Postgres that has one',
      { secret: undefined },
      'secret: expected 16 bytes or more, or else a postgres',
    ],
    [
      'a short secret',
      { secret: 'guess me please' },
      'secret: expected 16 to 1024 bytes that nobody can guess, got 15 bytes',
    ],
    [
      'a long secret',
      { secret: 'x'.repeat(1_025) },
      'secret: expected 16 to 1024 bytes that nobody can guess, got 1025',
    ],
    ['a number for a secret', { secret: 12_345 }, 'secret: expected a string or bytes, got a number'],
    ['an owner in upper case', { owner: 'Gateway' }, 'owner: expected 1 to 64 characters of a-z, 0-9, _ and -'],
    ['a tenant that would be two parts of a key', { tenant: 'a:b' }, 'tenant: expected 1 to 64 characters of a-z'],
    ['a tenant that is none', { tenant: 7 }, 'tenant: expected a string, got a number'],
    ['a time for a clock', { now: 5 }, 'now: expected a function, got 5'],
    ['a word for a flag', { migrate: 'yes' }, 'migrate: expected true or false'],
  ])('refuses %s before it connects', async (_, options, message) => {
    // Nobody listens there: whoever connected would tell of that instead.
    const nowhere = { redis: 'redis://127.0.0.1:1', secret: SECRET }
    const given = typeof options === 'object' ? { ...nowhere, ...options } : options
    const failure = await Primitives.connect(given as PrimitivesOptions).catch((error) => error)
    expect(failure).toMatchObject({ code: 'invalid_argument' })
    expect(failure.message).toContain(message)
    expect(failure.message).not.toMatch(/guess me please|xxxx/)
  })

  it('says what needs Postgres where none is given', async () => {
    const primitives = await Primitives.connect({ redis: await freshRedis(), secret: SECRET })
    for (const make of [
      () => new Idempotency(primitives, 'x', { durable: true }),
      () => new StrictSequence(primitives, 'x'),
      () => new OneTimeTokens(primitives, 'x', { audit: true }),
    ]) {
      expect(make).toThrow(/^postgres: expected a connection, since .* is kept there, got none$/)
    }
    await primitives.close()
  })

  it.each<[string, (primitives: never) => unknown]>([
    ['a window', (primitives) => new FixedWindow(primitives, 'login')],
    ['leases', (primitives) => new Leases(primitives, 'send')],
    ['leases over several', (primitives) => new Leases([primitives, primitives, primitives], 'send')],
    ['flags', (primitives) => new FeatureFlags(primitives)],
    ['a strict sequence', (primitives) => new StrictSequence(primitives, 'invoice')],
    ['a gapless sequence', (primitives) => new GaplessSequence(primitives, 'invoice')],
    ['a sampler', (primitives) => new KeySampler(primitives)],
  ])('has to be waited for: %s', (_, make) => {
    const early = Promise.resolve() as never
    const expected = 'primitives: expected what Primitives.connect resolves to, got nothing'
    expect(() => make(early)).toThrow(expect.objectContaining({ code: 'invalid_argument', message: expected }))
  })

  it('comes with the errors that wallets throw', () => {
    expect(HoldfastError).toBe(OfWallets)
  })

  it('takes a secret as text or as bytes, and makes other keys with another one', async () => {
    const redis = await freshRedis()
    const keyWith = async (secret: string | Uint8Array) => {
      const primitives = await Primitives.connect({ redis, secret })
      const { hash } = new KeySpace(primitives.context, 'window', 'login').scope('user')
      await primitives.close()
      return hash
    }
    expect(await keyWith(SECRET)).toBe(await keyWith(Buffer.from(SECRET)))
    expect(await keyWith(SECRET)).not.toBe(await keyWith(`${SECRET}.`))
  })

  it('takes the secret of the database where none is given: the same in all processes', async () => {
    const [redis, postgres] = [await freshRedis(), await freshDatabase()]
    const processes = [
      await Primitives.connect({ redis, postgres, ...PATIENT }),
      await Primitives.connect({ redis, postgres, migrate: false, ...PATIENT }),
    ] as const
    const window = (primitives: Primitives) => new FixedWindow(primitives, 'login')
    await window(processes[0]).add('user', { at })
    expect((await window(processes[1]).peek('user', { at })).count).toBe(1)
    const other = await Primitives.connect({ redis, postgres, secret: SECRET, ...PATIENT })
    expect((await window(other).peek('user', { at })).count).toBe(0)
    await Promise.all([...processes, other].map((primitives) => primitives.close()))
  })

  it('brings the schema up to date, or refuses another one where it may not', async () => {
    const [redis, postgres] = [await freshRedis(), await emptyDatabase()]
    await expect(Primitives.connect({ redis, postgres, migrate: false })).rejects.toThrow('holdfast migrate')
    // It has not done so all the same.
    await expect(Primitives.connect({ redis, postgres, migrate: false })).rejects.toThrow('holdfast migrate')
    const primitives = await Primitives.connect({ redis, postgres })
    await primitives.close()
    await (await Primitives.connect({ redis, postgres, migrate: false })).close()
  })

  it('does without Redis until it comes, and says so', async () => {
    const logged: string[] = []
    const primitives = await Primitives.connect({
      redis: 'redis://127.0.0.1:1',
      secret: SECRET,
      redisOptions: { connectTimeoutMs: 200, commandTimeoutMs: 200 },
      telemetry: { log: (_, event) => logged.push(event) },
    })
    expect(logged).toContain('redis_away')
    await expect(new FixedWindow(primitives, 'login').add('user')).rejects.toMatchObject({ code: 'unavailable' })
    await primitives.close()
  })

  it('closes what it opened, for all tenants, and nothing that was brought', async () => {
    const [url, database] = [await freshRedis(), await freshDatabase()]
    const redis = new RedisConnection(url, PATIENT.redisOptions)
    const postgres = new Postgres(database)
    const client = new Redis(url)
    const opened = await Primitives.connect({ redis: url, secret: SECRET, ...PATIENT })
    const brought = await Primitives.connect({ redis, postgres })
    const like = await Primitives.connect({ redis: client, secret: SECRET, ...PATIENT })
    const tenant = opened.forTenant('acme')
    for (const primitives of [opened, tenant, brought, like]) {
      expect((await new FixedWindow(primitives, 'login').add('user', { at })).count).toBeGreaterThan(0)
    }
    await Promise.all([opened, brought, like].map((primitives) => primitives.close()))
    for (const primitives of [opened, tenant, like]) {
      await expect(new FixedWindow(primitives, 'login').add('user')).rejects.toMatchObject({ code: 'unavailable' })
    }
    await redis.ping()
    expect(await postgres.query('readSettings', [])).toHaveLength(1)
    expect(await client.ping()).toBe('PONG')
    await Promise.all([redis.close(), postgres.close()])
    client.disconnect()
  })

  it('keeps tenants apart, and refuses one that can’t be part of a key', async () => {
    const on = await onSingle()
    const [acme, other] = [on.primitives.forTenant('acme'), on.primitives.forTenant('other')]
    await new FixedWindow(acme, 'login').add('user', { at, by: 5 })
    expect((await new FixedWindow(other, 'login').peek('user', { at })).count).toBe(0)
    expect((await new FixedWindow(on.primitives, 'login').peek('user', { at })).count).toBe(0)
    expect((await new FixedWindow(acme.forTenant('acme'), 'login').peek('user', { at })).count).toBe(5)
    // Not even the hash of the scope tells that it is the same user.
    const [one, two] = [acme, other].map(({ context }) => new KeySpace(context, 'window', 'login').scope('user').hash)
    expect(one).not.toBe(two)
    expect(() => acme.forTenant('A')).toThrow('tenant: expected 1 to 64 characters')
    await on.close()
  })
})

describe.each(TOPOLOGIES)('calls on %s', (_, open) => {
  let on: On
  beforeAll(async () => {
    on = await open()
  })
  afterAll(() => on.close())

  /** What was sent: the keys of each call. */
  function watched(primitives: Primitives) {
    const sent: (readonly string[])[] = []
    const seen = withRunner(primitives, (run) => (script, keys, args) => {
      sent.push(keys)
      return run(script, keys, args)
    })
    return { primitives: seen, sent }
  }

  it('of one turn go together, 32 at most, and each has an answer of its own', async () => {
    const { primitives, sent } = watched(on.primitives)
    const window = new FixedWindow(primitives, on.operation())
    const counts = await Promise.all(Array.from({ length: 100 }, (_, n) => window.add('user', { at, by: n + 1 })))
    expect(sent.map((keys) => keys.length)).toEqual([32, 32, 32, 4])
    let sum = 0
    expect(counts.map(({ count }) => count)).toEqual(counts.map((_, n) => (sum += n + 1)))
  })

  it('of several scopes go together as far as they lie in one slot', async () => {
    const { primitives, sent } = watched(on.primitives)
    const window = new FixedWindow(primitives, on.operation())
    const scopes = Array.from({ length: 20 }, (_, n) => `user-${n}`)
    await Promise.all([...scopes, ...scopes].map((scope) => window.add(scope, { at })))
    expect(sent.flat()).toHaveLength(40)
    if (on.redis instanceof Cluster) {
      for (const keys of sent) {
        const slots = await Promise.all(keys.map((key) => (on.redis as Cluster).cluster('KEYSLOT', key)))
        expect(new Set(slots).size).toBe(1)
      }
      // Both of a scope are in one.
      expect(sent.length).toBeLessThanOrEqual(20)
    } else expect(sent.map((keys) => keys.length)).toEqual([32, 8])
    for (const scope of scopes) expect((await window.peek(scope, { at })).count).toBe(2)
  })

  it('leave in the turn they were made in, also alone', async () => {
    const { primitives, sent } = watched(on.primitives)
    const window = new FixedWindow(primitives, on.operation())
    const added = window.add('user', { at })
    expect(sent).toHaveLength(0)
    await new Promise<void>((resolve) => setImmediate(resolve))
    expect(sent).toHaveLength(1)
    expect((await added).count).toBe(1)
  })

  it('that meet a damaged key cost the others nothing', async () => {
    const operation = on.operation()
    const window = new FixedWindow(on.primitives, operation)
    await window.add('user', { at })
    const [key = ''] = await on.keys(operation)
    await on.redis.set(key, 'damaged')
    on.counted('window')
    const outcomes = await Promise.allSettled(
      Array.from({ length: 30 }, (_, n) => window.add(n % 3 === 0 ? 'user' : 'other', { at })),
    )
    expect(outcomes.map(({ status }) => status === 'rejected')).toEqual(outcomes.map((_, n) => n % 3 === 0))
    expect((await window.peek('other', { at })).count).toBe(20)
    expect(on.counted('window')).toEqual({ damaged: 10, added: 20 })
    expect(await on.redis.get(key)).toBe('damaged')
  })

  it('whose answer was lost are told so, each of them, and are not made again', async () => {
    let runs = 0
    const primitives = withRunner(on.primitives, (run) => async (script, keys, args) => {
      runs += 1
      const answer = await run(script, keys, args)
      if (script.name === 'window_add') throw new RedisUnavailable('unknown', 'the connection broke')
      return answer
    })
    const window = new FixedWindow(primitives, on.operation())
    on.counted('window')
    const outcomes = await Promise.allSettled(Array.from({ length: 40 }, () => window.add('user', { at })))
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'unavailable', outcome: 'unknown' } })
    }
    expect(runs).toBe(2)
    expect(on.counted('window')).toEqual({ unavailable: 40 })
    // They did run.
    expect((await window.peek('user', { at })).count).toBe(40)
  })

  it('whose script broke are told that it is our mistake, without what they were about', async () => {
    const primitives = withRunner(on.primitives, () => async (script) => {
      throw new ScriptError(script.name, 'ERR a mistake of ours')
    })
    await expect(new FixedWindow(primitives, on.operation()).add('user')).rejects.toMatchObject({
      code: 'internal_error',
      message: expect.stringContaining('a mistake of ours'),
    })
  })

  it('show no word of whom they are about: not in keys, values, logs, labels or errors', async () => {
    const personal = 'alice@example.org'
    const told: string[] = []
    const secretive = await Primitives.connect({
      redis: on.redis,
      secret: SECRET,
      ...PATIENT,
      telemetry: {
        count: (...given) => told.push(JSON.stringify(given)),
        observe: (...given) => told.push(JSON.stringify(given)),
        log: (...given) => told.push(JSON.stringify(given)),
      },
    })
    const operation = on.operation()
    const window = new FixedWindow(secretive, operation)
    await window.add(personal, { at })
    const keys = await on.keys(operation)
    for (const key of keys) told.push(key, String(await on.redis.get(key)))
    await on.redis.set(keys[0] as string, 'damaged')
    const { context } = secretive
    note(context, 'looked_at', new KeySpace(context, 'window', operation).scope([personal, 'export']), { times: 3 })
    for (const act of [
      () => window.add(personal, { at }),
      () => window.add(`${personal}\n`),
      () => window.add(personal.repeat(100)),
      () => window.add([personal, '']),
      () => window.add(personal, { by: personal as never }),
      () => window.add(personal, { at: personal as never }),
      () => new FixedWindow(secretive, personal),
      () => new FixedWindow(secretive, operation, { windowMs: personal as never }),
    ]) {
      const error = await (async () => act())().then(
        () => expect.unreachable(),
        (failure) => failure,
      )
      told.push(String(error), JSON.stringify(error), error.stack)
    }
    await secretive.close()
    await expect(window.add(personal)).rejects.toSatisfy((error) => told.push(String(error), JSON.stringify(error)) > 0)
    expect(told.length).toBeGreaterThan(20)
    expect(told.filter((text) => /alice|example\.org/.test(text))).toEqual([])
  })
})

describe('keys', () => {
  const space = (
    given: { tenant?: string; secret?: string; purpose?: 'window' | 'lease'; operation?: string } = {},
  ) => {
    const { tenant = 'acme', secret = SECRET, purpose = 'window', operation = 'login' } = given
    return new KeySpace({ owner: 'gateway', tenant, secret: checkSecret(secret) }, purpose, operation)
  }

  it('have owner, purpose, version, tenant, operation, scope and part', () => {
    const scope = space().scope('user')
    expect(scope.base).toMatch(/^hf:gateway:window:v1:acme:login:\{[0-9a-f]{32}\}$/)
    expect(scope.key('202607021430')).toBe(`${scope.base}:202607021430`)
    expect(space().pattern).toBe('hf:gateway:window:v1')
    expect(readPurpose(scope.base)).toBe('window')
    expect(readPurpose(scope.key('a:b'))).toBe('window')
    expect(readPurpose('hf:gateway:unknown:v1:acme:login:{00000000000000000000000000000000}')).toBeNull()
    expect(readPurpose('hf:gateway:window:v1:acme:login:{user}')).toBeNull()
    expect(keysOf('gateway')).toBe('hf:gateway:*:v1:*')
  })

  it('have a hash that differs with all that it stands for', () => {
    const hashes = [
      space().scope('user').hash,
      space().scope('User').hash,
      space().scope(['us', 'er']).hash,
      space().scope(['user', 'export']).hash,
      space().scope(['export', 'user']).hash,
      space().whole.hash,
      space({ tenant: 'other' }).scope('user').hash,
      space({ purpose: 'lease' }).scope('user').hash,
      space({ operation: 'logout' }).scope('user').hash,
      space({ secret: 'another secret of tests' }).scope('user').hash,
    ]
    expect(new Set(hashes).size).toBe(hashes.length)
    expect(space().scope(['user']).hash).toBe(space().scope('user').hash)
    expect(space().scope('user').hash).toBe(space().hash('user'))
  })

  it.each<[string, unknown, string]>([
    ['nobody', '', 'scope: expected 1 to 1024 characters, got 0 characters'],
    ['nothing', undefined, 'scope: expected a string or some strings, got nothing'],
    ['no words', [], 'scope: expected a string or some strings, got an array'],
    ['what would be two words', 'a\0b', 'scope: expected no control characters'],
    ['half a character', '\ud83d', 'scope: expected well-formed Unicode'],
    ['more than is sensible', 'x'.repeat(1_025), 'scope: expected 1 to 1024 characters, got 1025 characters'],
    ['a number among words', ['a', 5], 'scope: expected a string, got a number'],
  ])('are not made of %s', (_, scope, message) => {
    expect(() => space().scope(scope as string)).toThrow(message)
  })
})

describe('what is told', () => {
  it('of a key has one form, and of a result two labels', async () => {
    const on = await onSingle({ tenant: 'acme', owner: 'gateway' })
    const { context } = on.primitives
    const scope = new KeySpace(context, 'idempotency', 'create-order').scope('key-1')
    note(context, 'idempotency_claim_conflict', scope, { attempts: 2 })
    expect(on.logged).toEqual([
      {
        event: 'idempotency_claim_conflict',
        facts: {
          tenantId: 'acme',
          operation: 'create-order',
          keyHashPrefix: `hmac_${scope.hash.slice(0, 8)}`,
          redisPattern: 'hf:gateway:idempotency:v1',
          attempts: 2,
        },
      },
    ])
    tell(context, 'idempotency', 'exists')
    tell(context, 'idempotency', 'exists', 4)
    expect(on.counted('idempotency')).toEqual({ exists: 5 })
    await on.close()
  })

  it('goes nowhere when nobody listens', async () => {
    const primitives = await Primitives.connect({ redis: await freshRedis(), secret: SECRET })
    const { context } = primitives
    tell(context, 'window', 'added')
    note(context, 'event', new KeySpace(context, 'window', 'login').whole)
    await primitives.close()
  })
})
