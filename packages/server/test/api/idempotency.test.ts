import { once } from 'node:events'
import { request } from 'node:http'
import { type PostgresHandle, startPostgres } from '@holdfast/services'
import { migrate, Postgres } from 'holdfast'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { SCOPES } from '../../src/access/index.js'
import { Api, type Caller, openWallet } from '../support/api.js'

let api: Api
let other: Api
let call: Caller
let elsewhere: Caller
beforeAll(async () => {
  api = await Api.start()
  const key = await api.key()
  call = api.as(key)
  // A second server on the same Redis and Postgres, as behind a balancer.
  other = await Api.start({ databaseUrl: api.databaseUrl, redisUrl: api.redisUrl })
  elsewhere = other.as(key)
})

describe('a key', () => {
  it('is required by everything that moves something', async () => {
    const path = await openWallet(call)
    const operations: [string, object?][] = [
      [`${path}/credits`, { amount: 1 }],
      [`${path}/debits`, { amount: 1 }],
      [`${path}/refunds`, { seq: 1, amount: 1 }],
      [`${path}/holds`, { amount: 1, ttl: 1 }],
      [`${path}/holds/h/captures`, { amount: 1 }],
      [`${path}/holds/h/extend`, { amount: 1 }],
      [`${path}/holds/h/settle`, { total: 1 }],
      [`${path}/holds/h/release`],
      [`${path}/sessions`, { by: 'units', rate: 1, reserve: 1 }],
      [`${path}/freeze`],
      [`${path}/unfreeze`],
      [`${path}/credit-limit`, { amount: 1 }],
      [`${path}/close`],
      ['/v1/transfers', { from: 'a', to: 'b', amount: 1 }],
    ]
    for (const [operation, body] of operations) {
      const { status, body: problem } = await call('POST', operation, { body })
      expect([operation, status, problem.code]).toEqual([operation, 400, 'key_required'])
      expect(problem.argument).toBe('header.idempotency-key')
    }
    expect((await call('GET', path)).body.seq).toBe(1)
  })

  it('is the same bare and quoted', async () => {
    const path = await openWallet(call)
    const debit = (key: string) => call('POST', `${path}/debits`, { body: { amount: 10 }, key })
    expect((await debit('order 17')).body).toMatchObject({ replayed: false, entry: { key: 'order 17' } })
    expect((await debit('"order 17"')).body.replayed).toBe(true)
    expect((await debit('"say \\"hi\\" \\\\"')).body.entry.key).toBe('say "hi" \\')
  })

  it.each(['""', '"open', '"a"b', '"a\\b"', '~mine', 'x'.repeat(256), `"${'x'.repeat(256)}"`, 'caf\u00e9'])(
    'that is none is refused: %s',
    async (key) => {
      const path = await openWallet(call)
      const refused = await call('POST', `${path}/debits`, { body: { amount: 10 }, key })
      expect(refused).toMatchObject({ status: 400, body: { code: 'invalid_argument' } })
      expect((await call('GET', path)).body.available).toBe(1_000)
    },
  )

  it('that comes twice in one request is refused', async () => {
    const path = await openWallet(call)
    const key = await api.key()
    const sent = request(`${api.url}${path}/debits`, { method: 'POST' })
    sent.setHeader('authorization', `Bearer ${key}`)
    sent.setHeader('content-type', 'application/json')
    sent.setHeader('idempotency-key', ['a', 'b'])
    sent.end('{"amount":1}')
    const [response] = await once(sent, 'response')
    response.resume()
    expect(response.statusCode).toBe(400)
  })

  it('gives the first answer again, from any server', async () => {
    const path = await openWallet(call)
    const body = { amount: 10, metadata: { first: true } }
    const first = await call('POST', `${path}/debits`, { body, key: 'k' })
    const again = await elsewhere('POST', `${path}/debits`, { body: { amount: 10 }, key: 'k' })
    expect(again.body).toEqual({ ...first.body, replayed: true })
    expect((await call('GET', path)).body.available).toBe(990)
  })

  it('with other parameters is a conflict, and changes nothing', async () => {
    const path = await openWallet(call)
    await call('POST', `${path}/debits`, { body: { amount: 10 }, key: 'k' })
    for (const [operation, body] of [
      ['debits', { amount: 11 }],
      ['credits', { amount: 10 }],
      ['holds', { amount: 10, ttl: 1_000 }],
    ] as const) {
      expect(await elsewhere('POST', `${path}/${operation}`, { body, key: 'k' })).toMatchObject({
        status: 422,
        body: { code: 'idempotency_conflict', retryable: false },
      })
    }
    expect((await call('GET', path)).body).toMatchObject({ available: 990, seq: 2 })
  })

  it('of a refusal may be used again', async () => {
    const path = await openWallet(call, 5)
    expect((await call('POST', `${path}/debits`, { body: { amount: 10 }, key: 'k' })).status).toBe(409)
    await call('POST', `${path}/credits`, { body: { amount: 5 }, key: 'c' })
    expect((await call('POST', `${path}/debits`, { body: { amount: 10 }, key: 'k' })).body).toMatchObject({
      available: 0,
      replayed: false,
    })
  })

  it('used at the same time on two servers is done once, and all hear the same', async () => {
    const path = await openWallet(call)
    const callers = Array.from({ length: 40 }, (_, n) => (n % 2 === 0 ? call : elsewhere))
    const answers = await Promise.all(
      callers.map((one) => one('POST', `${path}/debits`, { body: { amount: 10 }, key: 'k' })),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(new Set(answers.map(({ body }) => body.entry.hash)).size).toBe(1)
    expect(answers.filter(({ body }) => !body.replayed)).toHaveLength(1)
    expect((await call('GET', path)).body.available).toBe(990)
  })
})

describe('while Postgres holds an operation up', () => {
  let postgres: PostgresHandle
  let slow: Api
  let caller: Caller
  beforeAll(async () => {
    postgres = await startPostgres({ durable: false })
    const preparing = new Postgres(postgres.url)
    await migrate(preparing)
    await preparing.close()
    slow = await Api.start({ databaseUrl: postgres.url })
    const { text, key } = await slow.backend.keys.create({ tenant: 'default', name: 'test', scopes: SCOPES })
    caller = slow.as(text)
    // Who calls is known without Postgres: what is held up here is an operation, and never the question whose key it is.
    const found = await slow.backend.keys.find(key.id)
    vi.spyOn(slow.backend.keys, 'find').mockImplementation(async () => found)
  })
  afterAll(async () => {
    postgres.resume()
    await slow.close()
    await postgres.stop()
  })

  /** How often Redis has said yes: what it has decided by then waits for Postgres. */
  const decided = async (): Promise<number> => {
    const metrics = await (await fetch(`${slow.url}/metrics`)).text()
    return Number(/^holdfast_decisions_total\{answer="accepted"\} (\d+)$/m.exec(metrics)?.[1] ?? 0)
  }

  it('a second request with its key waits, and gets its answer', async () => {
    const path = await openWallet(caller)
    const before = await decided()
    postgres.pause()
    const answered: string[] = []
    const debit = (name: string) =>
      caller('POST', `${path}/debits`, { body: { amount: 10 }, key: 'k' }).finally(() => answered.push(name))
    const first = debit('first')
    await expect.poll(decided, { timeout: 20_000 }).toBeGreaterThan(before)
    const second = debit('second')
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(answered).toEqual([])
    postgres.resume()
    const answers = await Promise.all([first, second])
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect(answers[0]?.body.entry).toEqual(answers[1]?.body.entry)
    expect((await caller('GET', path)).body.available).toBe(990)
  })

  it('a caller who goes away ends the waiting, not the operation', async () => {
    const path = await openWallet(caller)
    const before = await decided()
    postgres.pause()
    const leaving = new AbortController()
    const gone = caller('POST', `${path}/debits`, { body: { amount: 10 }, key: 'k', signal: leaving.signal }).catch(
      (error: Error) => error.name,
    )
    await expect.poll(decided, { timeout: 20_000 }).toBeGreaterThan(before)
    leaving.abort()
    expect(await gone).toBe('AbortError')
    const isAborted = () => slow.lines.some((line) => line.includes('"event":"request_aborted"'))
    await expect.poll(isAborted, { timeout: 20_000 }).toBe(true)
    postgres.resume()
    await expect.poll(async () => (await caller('GET', path)).body.available, { timeout: 20_000 }).toBe(990)
    expect((await caller('POST', `${path}/debits`, { body: { amount: 10 }, key: 'k' })).body.replayed).toBe(true)
    expect(slow.lines.filter((line) => line.includes('"event":"request_failed"'))).toEqual([])
  })
})

describe('the durability', () => {
  it('is memory where the caller prefers that, and the ledger otherwise', async () => {
    const path = await openWallet(call)
    const debit = async (key: string, prefer?: string) =>
      (await call('POST', `${path}/debits`, { body: { amount: 1 }, key, ...(prefer && { headers: { prefer } }) })).body
    expect((await debit('a')).durability).toBe('ledger')
    expect((await debit('b', 'durability=memory')).durability).toBe('memory')
    expect((await debit('c', 'respond-async, durability="memory"; x=1')).durability).toBe('memory')
    expect((await debit('d', 'durability=ledger')).durability).toBe('ledger')
    expect((await debit('e', 'handling=lenient')).durability).toBe('ledger')
    expect((await debit('f', 'durability=none')).code).toBe('invalid_argument')
    await expect.poll(async () => (await call('GET', path)).body.available, { timeout: 20_000 }).toBe(995)
  })
})
