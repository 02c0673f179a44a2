import { connect } from 'node:net'
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { Api, type Caller, openWallet } from './support/api.js'

/** What W3C says of `traceparent`, as far as it is needed here: the SDKs for programs bring the whole of it. */
const TRACE_PARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-01$/
const propagator: Parameters<typeof propagation.setGlobalPropagator>[0] = {
  fields: () => ['traceparent'],
  inject: () => {},
  extract(parent, carrier, getter) {
    const [, traceId, spanId] = TRACE_PARENT.exec(String(getter.get(carrier, 'traceparent'))) ?? []
    if (!traceId || !spanId) return parent
    return trace.setSpanContext(parent, { traceId, spanId, traceFlags: 1, isRemote: true })
  },
}

const exporter = new InMemorySpanExporter()
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })

let before: Api
let api: Api
let call: Caller
let key: string
beforeAll(async () => {
  before = await Api.start()
  trace.setGlobalTracerProvider(provider)
  propagation.setGlobalPropagator(propagator)
  api = await Api.start({ redisUrl: before.redisUrl, databaseUrl: before.databaseUrl })
  key = await api.key()
  call = api.as(key)
})
afterEach(() => exporter.reset())
afterAll(async () => {
  trace.disable()
  propagation.disable()
  context.disable()
  await provider.shutdown()
})

/** The connection's end comes a moment after the answer. */
async function spans(count: number): Promise<ReadableSpan[]> {
  await vi.waitFor(() => expect(exporter.getFinishedSpans()).toHaveLength(count), 20_000)
  return exporter.getFinishedSpans()
}

describe('with an OpenTelemetry SDK in the process', () => {
  it('a request is a span under the caller’s trace, and says nothing of whom it is about', async () => {
    const path = await openWallet(call, 10)
    await spans(2)
    exporter.reset()
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
    const headers = { traceparent, 'x-request-id': 'job-17' }
    const answer = await call('POST', `${path}/debits?token=hunter2`, { body: { amount: 3 }, key: 'order-9', headers })
    expect(answer.status).toBe(200)
    const [span] = (await spans(1)) as [ReadableSpan]
    expect(span).toMatchObject({ name: 'POST /v1/wallets/:id/debits', kind: SpanKind.SERVER })
    expect(span.spanContext().traceId).toBe('a'.repeat(32))
    expect(span.parentSpanContext?.spanId).toBe('b'.repeat(16))
    expect(span.attributes).toEqual({
      'http.request.method': 'POST',
      'http.route': '/v1/wallets/:id/debits',
      'http.response.status_code': 200,
      'holdfast.request_id': 'job-17',
    })
  })

  it('a refusal has its code, and is no error of ours', async () => {
    const path = await openWallet(call, 0)
    await call('POST', `${path}/debits`, { body: { amount: 3 }, key: 'order-9' })
    const refused = (await spans(2))[1] as ReadableSpan
    expect(refused.attributes).toMatchObject({
      'http.response.status_code': 409,
      'holdfast.code': 'insufficient_funds',
    })
    expect(refused.status.code).toBe(SpanStatusCode.UNSET)
  })

  it('a caller who goes away leaves a span without an answer', async () => {
    const { hostname, port } = new URL(api.url)
    const caller = connect(Number(port), hostname)
    const lines = ['host: x', `authorization: Bearer ${key}`, 'content-type: application/json', 'content-length: 100']
    caller.write(`POST /v1/wallets/w/debits HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n{`)
    const inFlight = async () => /^http_requests_in_flight (\d+)$/m.exec((await call('GET', '/metrics')).body)?.[1]
    // That one, and the one that asks.
    await vi.waitFor(async () => expect(await inFlight()).toBe('2'), 20_000)
    exporter.reset()
    caller.destroy()
    const ofCaller = () => exporter.getFinishedSpans().filter(({ name }) => name.includes('debits'))
    await vi.waitFor(() => expect(ofCaller()).toHaveLength(1), 20_000)
    const [span] = ofCaller() as [ReadableSpan]
    expect(span.status.code).toBe(SpanStatusCode.ERROR)
    expect(span.attributes).not.toHaveProperty('http.response.status_code')
  })
})

describe('without one', () => {
  it('no request is looked at: there is no hook', async () => {
    const other = before.as(await before.key())
    expect((await other('GET', '/v1/wallets')).status).toBe(200)
    expect(exporter.getFinishedSpans()).toEqual([])
  })
})
