import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { AuditReport, Finding } from 'holdfast'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { FindingsWebhook } from '../src/audit/index.js'
import type { ServerTelemetry } from '../src/metrics/index.js'

const SECRET = 'a secret that both of them know'

let server: Server
let url: string
let received: { at: number; headers: IncomingHttpHeaders; body: string }[]
/** What the address answers, one status after the other; the last one for good. 0: nothing at all. */
let answers: number[]
let outcomes: string[]
let logged: Record<string, unknown>[]
let webhook: FindingsWebhook

const telemetry = {
  count: (_metric: string, labels: Record<string, string>) => void outcomes.push(labels.outcome as string),
  log: (_level: string, event: string, facts: object) => void logged.push({ event, ...facts }),
} as unknown as ServerTelemetry

beforeEach(async () => {
  received = []
  outcomes = []
  logged = []
  answers = [204]
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    received.push({ at: performance.now(), headers: request.headers, body: String(Buffer.concat(chunks)) })
    const status = (answers.length > 1 ? answers.shift() : answers[0]) as number
    if (status === 0) return
    response.writeHead(status, status === 302 ? { location: url } : {}).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/findings`
  webhook = make()
})
afterEach(async () => {
  await webhook.close()
  server.closeAllConnections()
  server.close()
})

const make = (more: object = {}) =>
  new FindingsWebhook({ url, secret: SECRET, telemetry, triesMax: 4, backoffMs: 40, timeoutMs: 20_000, ...more })

const finding = (ref: string, action: Finding['action'] = 'reported'): Finding => {
  return { cause: 'journal_gap', shard: 3, tenant: 'default', ref, seq: 7, expected: 7, found: 8, action }
}
const report = (...findings: Finding[]) => ({ findings }) as unknown as AuditReport

async function until(done: () => boolean): Promise<void> {
  const from = performance.now()
  while (!done()) {
    if (performance.now() - from > 20_000) throw new Error('It never came')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

it('tells of findings, signed with the time', async () => {
  webhook.push(report(finding('a'), finding('b', 'repaired')))
  await until(() => outcomes.length === 1)
  const [{ headers, body }] = received as [(typeof received)[0]]
  const message = JSON.parse(body)
  expect(message).toEqual({
    id: headers['holdfast-delivery'],
    event: 'audit.findings',
    at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    findings: [finding('a'), finding('b', 'repaired')],
  })
  // As whoever receives it checks it: by the time it says, the body as it came, and the secret.
  const [, seconds, digest] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(headers['holdfast-signature'] as string) as string[]
  expect(createHmac('sha256', SECRET).update(`${seconds}.${body}`).digest('hex')).toBe(digest)
  expect(Math.abs(Number(seconds) - Date.now() / 1_000)).toBeLessThan(60)
  expect(headers['content-type']).toBe('application/json')
})

it('says nothing where nothing was found', async () => {
  webhook.push(report())
  webhook.push(report(finding('a')))
  await until(() => outcomes.length === 1)
  expect(received).toHaveLength(1)
})

it('tries again, later each time, until it is taken: the same message, signed anew', async () => {
  answers = [500, 429, 204]
  webhook.push(report(finding('a')))
  await until(() => outcomes.length === 1)
  expect(outcomes).toEqual(['delivered'])
  expect(received).toHaveLength(3)
  expect(new Set(received.map(({ body }) => body)).size).toBe(1)
  expect(new Set(received.map(({ headers }) => headers['holdfast-delivery'])).size).toBe(1)
  const [first, second, third] = received.map(({ at }) => at) as [number, number, number]
  expect(second - first).toBeGreaterThanOrEqual(19)
  expect(third - second).toBeGreaterThanOrEqual(39)
})

it('takes silence and a way elsewhere for a no, and gives up in the end', async () => {
  answers = [0, 302, 500, 500, 204]
  const impatient = make({ timeoutMs: 3_000 })
  impatient.push(report(finding('a')))
  await until(() => outcomes.length === 1)
  expect(outcomes).toEqual(['failed'])
  expect(received).toHaveLength(4)
  impatient.push(report(finding('b')))
  await until(() => outcomes.length === 2)
  expect(outcomes).toEqual(['failed', 'delivered'])
  await impatient.close()
})

it('tells of what stays once, and of what was repaired each time', async () => {
  webhook.push(report(finding('a'), finding('b', 'repaired')))
  webhook.push(report(finding('a'), finding('b', 'repaired')))
  await until(() => outcomes.length === 2)
  expect(received.map(({ body }) => JSON.parse(body).findings.length)).toEqual([2, 1])
})

it('tells again of what stays when nobody could be told', async () => {
  answers = [500]
  webhook.push(report(finding('a')))
  await until(() => outcomes.length === 1)
  answers = [204]
  webhook.push(report(finding('a')))
  await until(() => outcomes.length === 2)
  webhook.push(report(finding('a'), finding('b')))
  await until(() => outcomes.length === 3)
  expect(outcomes).toEqual(['failed', 'delivered', 'delivered'])
  expect(JSON.parse(received.at(-1)?.body as string).findings).toEqual([finding('b')])
})

it('says why nobody could be told', async () => {
  answers = [503]
  webhook.push(report(finding('a')))
  await until(() => outcomes.length === 1)
  const closed = createServer().listen(0, '127.0.0.1')
  await once(closed, 'listening')
  const { port } = closed.address() as AddressInfo
  await new Promise((resolve) => closed.close(resolve))
  const gone = make({ url: `http://127.0.0.1:${port}/`, triesMax: 1 })
  gone.push(report(finding('a')))
  await until(() => outcomes.length === 2)
  answers = [0]
  const silent = make({ triesMax: 1, timeoutMs: 50 })
  silent.push(report(finding('a')))
  await until(() => outcomes.length === 3)
  expect(logged).toMatchObject([
    { event: 'webhook_failed', tries: 4, reason: 'status 503' },
    { event: 'webhook_failed', tries: 1, reason: 'ECONNREFUSED' },
    { event: 'webhook_failed', tries: 1, reason: 'no answer in time' },
  ])
})

it('gives the name and the password of its address, and says neither', async () => {
  const named = make({ url: url.replace('//', '//hold%40fast:p%3Ass@') })
  named.push(report(finding('a')))
  await until(() => outcomes.length === 1)
  expect(outcomes).toEqual(['delivered'])
  const [{ headers, body }] = received as [(typeof received)[0]]
  expect(headers.authorization).toBe(`Basic ${Buffer.from('hold@fast:p:ss').toString('base64')}`)
  expect(body).not.toContain('p:ss')
})

it('cuts what is much into messages, and lets no more wait than it can', async () => {
  answers = [0]
  webhook.push(report(...Array.from({ length: 10_250 }, (_, n) => finding(`${n}`))))
  await until(() => received.length === 1)
  expect(JSON.parse((received[0] as (typeof received)[0]).body).findings).toHaveLength(100)
  // 103 messages: one on its way, 100 waiting.
  expect(outcomes.filter((outcome) => outcome === 'dropped').length).toBeGreaterThanOrEqual(2)
})

it('ends at once when the server stops, in the middle of whatever it does', async () => {
  answers = [0]
  const patient = make({ timeoutMs: 60_000 })
  patient.push(report(finding('a')))
  await until(() => received.length === 1)
  const from = performance.now()
  await patient.close()
  const waiting = make({ backoffMs: 60_000 })
  answers = [500]
  waiting.push(report(finding('a')))
  await until(() => received.length === 2)
  await waiting.close()
  expect(performance.now() - from).toBeLessThan(20_000)
  // Given up, not tried to the end.
  expect(outcomes).toEqual(['dropped', 'dropped'])
  expect(logged).toEqual([])
})
