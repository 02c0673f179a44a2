/**
 * Every route, asked wrongly in every way that its schema suggests. Nothing may break, nothing may hang, nothing of the victim's may change,
 * and no answer may tell what is behind it.
 */
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ERRORS } from '../../../holdfast/src/errors/index.js'
import { Api, type Caller } from '../support/api.js'
import { Chance, hostile, improper, type Sent, type Situation } from '../support/fuzz.js'
import { type Described, type OpenApi, operationsOf } from '../support/openapi.js'

const SEED = 20_261_115
const INJECTED = 20_000
const OVER_SOCKETS = 2_000
const AT_A_TIME = 50
const ANSWER_MAX_MS = 60_000

const WALLETS = ['alice', 'bob', 'a b/c', '😀']
const INTERNALS =
  /node_modules|\bat .+:\d+:\d+|SELECT |relation "|ioredis|EVALSHA|ECONN|postgres:\/\/|redis:\/\/|undefined/

let api: Api
let victim: string
let attacker: string
let operations: Described[]
let before: unknown

beforeAll(async () => {
  api = await Api.start()
  victim = await api.key(undefined, { tenant: 'victim' })
  attacker = await api.key(undefined, { tenant: 'attacker' })
  operations = operationsOf((await api.as(victim)('GET', '/openapi.json')).body as OpenApi)
  await furnish(api.as(victim))
  before = await belongings()
})

/** Streams of events that were opened by the way would never end by themselves. */
const ending = setInterval(() => api?.backend.events.endStreams(), 10)
afterAll(() => clearInterval(ending))

async function furnish(call: Caller): Promise<void> {
  // By the name that the paths of made up requests have.
  await call('PUT', '/v1/flags/h', { body: { on: true, description: 'of the victim' } })
  const terms = { items: [{ id: 'of the victim', quantity: 10 }], perUser: 2, startsAt: 0, endsAt: 4_102_444_800_000 }
  await call('PUT', '/v1/sales/h', { body: terms })
  await call('POST', '/v1/sales/h/checkouts', {
    body: { user: 'alice', items: terms.items.map(({ id }) => ({ id })) },
    key: 'c',
  })
  const { startsAt: _, endsAt: __, ...template } = { ...terms, every: 86_400_000 }
  await call('PUT', '/v1/sale-schedules/h', { body: template })
  // Not while it opens sales by itself.
  await call('POST', '/v1/sale-schedules/h/pause')
  for (const id of WALLETS) {
    const path = `/v1/wallets/${encodeURIComponent(id)}`
    await call('PUT', path, { body: { currency: 'usd', metadata: { secret: 'of the victim' } } })
    await call('POST', `${path}/credits`, { body: { amount: 1_000_000 }, key: 'c' })
    await call('POST', `${path}/holds`, { body: { amount: 1_000, ttl: 34_000_000_000 }, key: 'h' })
  }
}

/** All that the victim has, to the letter. */
async function belongings(): Promise<unknown> {
  const client = new pg.Client(api.databaseUrl)
  await client.connect()
  try {
    const wallets = await client.query("SELECT * FROM holdfast.wallets WHERE tenant = 'victim' ORDER BY ref")
    const entries = await client.query(
      "SELECT e.* FROM holdfast.entries e JOIN holdfast.wallets w ON w.ref = e.wallet WHERE w.tenant = 'victim' ORDER BY e.wallet, e.seq",
    )
    const keys = await client.query("SELECT id, scopes, revoked_at FROM holdfast.api_keys WHERE tenant = 'victim'")
    const flags = await client.query("SELECT * FROM holdfast.flags WHERE tenant = 'victim'")
    const sales = await client.query("SELECT * FROM holdfast.sales WHERE tenant = 'victim' ORDER BY id")
    const schedules = await client.query("SELECT * FROM holdfast.sale_schedules WHERE tenant = 'victim'")
    return {
      schedules: schedules.rows,
      sales: sales.rows,
      flags: flags.rows,
      wallets: wallets.rows,
      entries: entries.rows,
      keys: keys.rows,
    }
  } finally {
    await client.end()
  }
}

interface Got {
  status: number
  type: string
  body: string
}

/** What is wrong with an answer; null: nothing. */
function mistakeIn(got: Got, mayBeYes: boolean): string | null {
  if (got.status >= 500) return `status ${got.status}`
  if (INTERNALS.test(got.body)) return 'it tells what is behind'
  if (got.body.includes('of the victim')) return 'it tells what is the victim’s'
  if (got.status < 400) return mayBeYes ? null : 'it is a yes'
  if (got.body === '') return null
  if (!got.type.startsWith('application/problem+json')) return `it is ${got.type}`
  const { code, status } = JSON.parse(got.body) as { code: keyof typeof ERRORS; status: number }
  return ERRORS[code]?.status === got.status && status === got.status ? null : `code ${code} with ${got.status}`
}

/** Half of it by the victim's own key and certainly wrong, half of it by another tenant's or nobody's and of any kind. */
function make(n: number, chance: Chance): { sent: Sent; mayBeYes: boolean } {
  const operation = operations[n % operations.length] as Described
  const open = !operation.path.startsWith('/v1/')
  const situation: Situation = { chance, ids: WALLETS, credential: victim }
  if (!open && chance.once(2)) return { sent: improper(operation, situation), mayBeYes: false }
  const credential = open || chance.once(4) ? chance.of([null, 'hf_x', 'hft_e30.AAAA']) : attacker
  return { sent: hostile(operation, { ...situation, credential }), mayBeYes: true }
}

async function run(count: number, seed: number, send: (sent: Sent) => Promise<Got>): Promise<Record<string, number>> {
  const chance = new Chance(seed)
  const statuses: Record<string, number> = {}
  const mistakes: unknown[] = []
  for (let done = 0; done < count; done += AT_A_TIME) {
    const some = Array.from({ length: AT_A_TIME }, (_, n) => make(done + n, chance))
    await Promise.all(
      some.map(async ({ sent, mayBeYes }) => {
        const got = await Promise.race([send(sent), hung()])
        const mistake = mistakeIn(got, mayBeYes)
        statuses[got.status] = (statuses[got.status] ?? 0) + 1
        if (mistake) mistakes.push({ mistake, sent, status: got.status, body: got.body.slice(0, 300) })
      }),
    )
    expect(mistakes.slice(0, 3)).toEqual([])
  }
  return statuses
}

const hung = async (): Promise<Got> => {
  await new Promise((resolve) => setTimeout(resolve, ANSWER_MAX_MS).unref())
  return { status: 599, type: '', body: 'no answer' }
}

/** Both ways of being asked wrongly have to come up often, or this shows nothing. */
function expectVariety(statuses: Record<string, number>, count: number): void {
  expect(Object.values(statuses).reduce((sum, one) => sum + one, 0)).toBe(count)
  for (const status of ['200', '400', '401', '404', '409'])
    expect([status, (statuses[status] ?? 0) > count / 500]).toEqual([status, true])
  expect((statuses['400'] ?? 0) / count).toBeGreaterThan(0.2)
}

describe('fuzzing', () => {
  it(`${INJECTED} requests past the parser of HTTP change nothing`, { timeout: 240_000 }, async () => {
    const statuses = await run(INJECTED, SEED, async ({ payload, ...sent }) => {
      const { statusCode, headers, body } = await api.app.inject({
        ...sent,
        method: sent.method as 'GET',
        ...(payload !== undefined && { payload }),
      })
      return { status: statusCode, type: String(headers['content-type'] ?? ''), body }
    })
    expectVariety(statuses, INJECTED)
    expect(await belongings()).toEqual(before)
  })

  it(`${OVER_SOCKETS} requests over sockets change nothing`, { timeout: 120_000 }, async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: AT_A_TIME })
    const { hostname, port } = new URL(api.url)
    const statuses = await run(OVER_SOCKETS, SEED + 1, async ({ method, url, headers, payload }) => {
      const length = payload === undefined ? {} : { 'content-length': `${Buffer.byteLength(payload)}` }
      const sent = request({ agent, hostname, port, method, path: url, headers: { ...headers, ...length } })
      sent.end(payload)
      const [response] = await once(sent, 'response')
      return {
        status: response.statusCode,
        type: response.headers['content-type'] ?? '',
        body: await text(response),
      }
    })
    agent.destroy()
    expectVariety(statuses, OVER_SOCKETS)
    expect(await belongings()).toEqual(before)
  })

  it('bytes that are no request, or two, change nothing', { timeout: 60_000 }, async () => {
    const { hostname, port } = new URL(api.url)
    const head = `POST /v1/wallets/alice/debits HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${victim}\r\n`
    const keyed = `${head}idempotency-key: smuggled\r\ncontent-type: application/json\r\n`
    const raw = [
      `${keyed}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
      `${keyed}content-length: 12\r\ncontent-length: 13\r\n\r\n{"amount":1}`,
      `${keyed}transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
      `${keyed}transfer-encoding:\u000bchunked\r\n\r\n0\r\n\r\n`,
      `${head}idempotency-key: a\r\n b\r\n\r\n`,
      `${head}idempotency-key: a\u0000b\r\n\r\n`,
      `${head}x: ${'y'.repeat(100_000)}\r\n\r\n`,
      `POST /v1/wallets/alice/debits\r\nhost: x\r\n\r\n`,
      `GET http://[::1/v1/wallets HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`,
      `GET //v1//wallets HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`,
      `GET /v1/wallets/\u0080 HTTP/1.1\r\nhost: x\r\n\r\n`,
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001',
      '\r\n\r\n\r\n',
      'GET / HTTP/9.9\r\n\r\n',
    ]
    for (const bytes of raw) {
      const socket = connect(Number(port), hostname)
      socket.on('error', () => {})
      socket.end(Buffer.from(bytes, 'latin1'))
      const answer = await text(socket).catch(() => '')
      const [, status = '400'] = /^HTTP\/1\.1 (\d+)/.exec(answer) ?? []
      expect([bytes.slice(0, 60), Number(status) >= 400 && Number(status) < 500]).toEqual([bytes.slice(0, 60), true])
      expect(answer).not.toMatch(INTERNALS)
    }
    expect(await belongings()).toEqual(before)
  })

  it('leaves a server behind that works, and no failure in its log', async () => {
    const call = api.as(victim)
    expect((await call('POST', '/v1/wallets/alice/debits', { body: { amount: 1 }, key: 'after' })).status).toBe(200)
    expect(api.lines.filter((line) => /"level":"(error|fatal)"/.test(line)).slice(0, 3)).toEqual([])
    for (const line of api.lines)
      for (const hidden of [victim.slice(16), 'alice']) expect(line.includes(hidden)).toBe(false)
  })
})
