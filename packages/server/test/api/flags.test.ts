import { FeatureFlags, Primitives } from 'holdfast/primitives'
import { Redis } from 'ioredis'
import { beforeAll, expect, it, vi } from 'vitest'
import { Api, type Caller } from '../support/api.js'

let api: Api
let call: Caller
beforeAll(async () => {
  api = await Api.start()
  call = api.as(await api.key(['flags'], { tenant: 'acme' }))
})

const rules = [{ when: [{ attribute: 'country', test: 'in', value: ['DE', 'AT'] }], serve: 12.5 }]

it('makes, changes, kills and deletes flags, and remembers who did', async () => {
  const made = await call('PUT', '/v1/flags/new-checkout', { body: { on: true, rules, why: 'first customers' } })
  expect(made).toMatchObject({ status: 200, body: { changed: true, announced: true } })
  expect(made.body.flag).toEqual({
    name: 'new-checkout',
    version: 1,
    killed: false,
    on: true,
    percentage: 100,
    rules,
    description: '',
    createdAt: expect.any(Number),
    changedAt: made.body.flag.createdAt,
  })
  expect((await call('GET', '/v1/flags/new-checkout')).body).toEqual(made.body.flag)
  expect((await call('GET', '/v1/flags')).body).toEqual({ data: [made.body.flag] })
  const same = await call('PUT', '/v1/flags/new-checkout', { body: { on: true, rules } })
  expect(same.body).toMatchObject({ changed: false, flag: { version: 1 } })

  const killed = await call('POST', '/v1/flags/new-checkout/kill', { body: { why: 'payments fail' } })
  expect(killed.body).toMatchObject({ changed: true, flag: { killed: true, version: 2 } })
  expect((await call('POST', '/v1/flags/new-checkout/unkill')).body.flag).toMatchObject({ killed: false, version: 3 })
  expect(await call('DELETE', '/v1/flags/new-checkout?verison=2')).toMatchObject({
    status: 400,
    body: { argument: 'query.verison' },
  })
  expect((await call('DELETE', '/v1/flags/new-checkout?version=3&why=done')).body).toMatchObject({ version: 3 })
  expect(await call('GET', '/v1/flags/new-checkout')).toMatchObject({ status: 404, body: { code: 'flag_not_found' } })

  const { body } = await call('GET', '/v1/flag-changes?flag=new-checkout&limit=3')
  expect(body.data.map(({ kind }: { kind: string }) => kind)).toEqual(['delete', 'unkill', 'kill'])
  expect(body.data[2]).toMatchObject({
    by: expect.stringMatching(/^key:[A-Za-z0-9]{12}$/),
    why: 'payments fail',
    before: { killed: false, rules },
    after: { killed: true, rules },
  })
  const rest = await call('GET', `/v1/flag-changes?after=${body.next}`)
  expect(rest.body).toMatchObject({ data: [{ kind: 'put', before: null }], next: null })
})

it('refuses a version that is not the one there, and tells which is', async () => {
  await call('PUT', '/v1/flags/versioned', { body: { on: true, version: 0 } })
  const { version } = (await call('GET', '/v1/flags/versioned')).body
  for (const [method, path, body] of [
    ['PUT', '', { on: false, version: 0 }],
    ['POST', '/kill', { version: version + 1 }],
    ['DELETE', '?version=0', undefined],
  ] as const) {
    const refused = await call(method, `/v1/flags/versioned${path}`, { ...(body && { body }) })
    expect(refused).toMatchObject({ status: 409, body: { code: 'version_conflict', version } })
  }
  expect((await call('GET', '/v1/flags/versioned')).body).toMatchObject({ on: true, killed: false, version })
  expect(await call('POST', '/v1/flags/nothing/kill')).toMatchObject({ status: 404, body: { code: 'flag_not_found' } })
})

it('tells what a flag answers and why, and keeps nothing of whom it was asked for', async () => {
  await call('PUT', '/v1/flags/asked', { body: { on: true, percentage: 0, rules } })
  const ask = async (body: object) => (await call('POST', '/v1/flags/asked/evaluate', { body })).body
  expect(await ask({ subject: 'very-personal', attributes: { country: 'DE' } })).toEqual({
    on: expect.any(Boolean),
    because: 'rule',
    rule: 0,
    percentage: 12.5,
    place: expect.any(Number),
    version: expect.any(Number),
  })
  expect(await ask({ attributes: { country: 'FR', age: 18, beta: true, name: null } })).toMatchObject({
    on: false,
    because: 'percentage',
    place: null,
  })
  expect(await call('POST', '/v1/flags/nothing/evaluate')).toMatchObject({ status: 404 })
  expect(api.lines.join('')).not.toContain('very-personal')
})

it('says what is wrong with a flag', async () => {
  for (const [flag, body, message] of [
    ['a', {}, 'body.on: expected a value, got nothing'],
    ['a', { on: true, percentage: 0.001 }, 'percentage: expected a percentage from 0 to 100 in steps of 0.01'],
    ['a', { on: true, rules: [{ when: [{ attribute: 'a', test: 'in', value: 5 }], serve: true }] }, 'rules[0].when[0]'],
    ['a', { on: true, rules: [{ when: [{ attribute: 'a', test: 'like' }], serve: true }] }, 'body.rules.0.when.0.test'],
    ['A', { on: true }, 'path.flag: expected'],
  ] as const) {
    const { status, body: problem } = await call('PUT', `/v1/flags/${flag}`, { body })
    expect([status, problem.code]).toEqual([400, 'invalid_argument'])
    expect(problem.detail).toContain(message)
  }
})

it('shows a tenant its own flags alone, to a key for all of it', async () => {
  await call('PUT', '/v1/flags/ours', { body: { on: true } })
  const theirs = api.as(await api.key(['flags'], { tenant: 'others' }))
  expect((await theirs('GET', '/v1/flags')).body).toEqual({ data: [] })
  expect((await theirs('GET', '/v1/flag-changes')).body.data).toEqual([])
  expect(await theirs('POST', '/v1/flags/ours/kill')).toMatchObject({ status: 404 })
  const narrow = api.as(await api.key(['flags'], { tenant: 'acme', walletPrefix: 'eu-' }))
  expect(await narrow('POST', '/v1/flags/ours/kill')).toMatchObject({ status: 403, body: { code: 'forbidden' } })
  expect((await call('GET', '/v1/flags/ours')).body.killed).toBe(false)
})

it('reaches applications that have the flags in their own memory, whoever owns their keys', async () => {
  const primitives = await Primitives.connect({
    redis: api.redisUrl,
    postgres: api.databaseUrl,
    tenant: 'acme',
    owner: 'shop',
  })
  const flags = new FeatureFlags(primitives, { stalenessMs: 400 })
  await flags.ready()
  await call('PUT', '/v1/flags/spread', { body: { on: true } })
  await vi.waitFor(() => expect(flags.isOn('spread', 'user-17')).toBe(true), { timeout: 30_000 })
  await call('POST', '/v1/flags/spread/kill')
  await vi.waitFor(() => expect(flags.explain('spread').because).toBe('killed'), { timeout: 30_000 })
  flags.close()
  await primitives.close()
})

it('counts the keys of primitives in Redis, of all owners, until it is stopped', async () => {
  const sampling = await Api.start({ keySampleMs: 100 })
  const redis = new Redis(sampling.redisUrl)
  await redis.set(`hf:shop:window:v1:default:login:{${'0'.repeat(32)}}:202607021430`, '1')
  const metrics = async () => (await sampling.as(null)('GET', '/metrics')).body as string
  await vi.waitFor(
    async () => {
      expect(await metrics()).toMatch(/^holdfast_primitive_keys\{primitive="window"\} 1$/m)
      expect(await metrics()).toMatch(/^holdfast_primitive_ttl_missing\{primitive="window"\} 1$/m)
    },
    { timeout: 20_000, interval: 100 },
  )
  await sampling.backend.close()
  expect(await metrics()).not.toMatch(/^holdfast_primitive_keys\{/m)
  redis.disconnect()
})

it('deletes what it answers with, whoever changes it meanwhile', async () => {
  for (let round = 0; round < 10; round += 1) {
    await call('PUT', '/v1/flags/contested', { body: { on: true, percentage: 1 } })
    const change = call('PUT', '/v1/flags/contested', { body: { on: true, percentage: 2, why: `${round}` } })
    const gone = await call('DELETE', '/v1/flags/contested')
    await change
    const { data } = (await call('GET', '/v1/flag-changes?flag=contested&limit=2')).body
    const deleted = data.find(({ kind }: { kind: string }) => kind === 'delete')
    expect(gone.body.percentage).toBe(deleted.before.percentage)
    await call('DELETE', '/v1/flags/contested')
  }
})
