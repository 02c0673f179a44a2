import { fileURLToPath } from 'node:url'
import { METRICS } from 'holdfast'
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { createMetrics, HTTP_METRICS } from '../src/metrics/index.js'

const TABLE = Object.entries({ ...METRICS, ...HTTP_METRICS })
const metrics = () => createMetrics(pino({ level: 'silent' }))

describe('the registry', () => {
  it('has every metric of the tables, with its type and help, beside those of the process', async () => {
    const text = await metrics().registry.metrics()
    for (const [name, { type, help }] of TABLE) {
      expect(text).toContain(`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`)
    }
    expect(text).toContain('process_resident_memory_bytes')
    expect(text).toContain('nodejs_eventloop_lag_seconds')
  })

  it('counts, observes and reads gauges when it is asked', async () => {
    const { registry, telemetry } = metrics()
    telemetry.count('redis_reconnects_total')
    telemetry.count('redis_reconnects_total', {}, 2)
    telemetry.observe('postgres_query_duration_seconds', 0.0003, { query: 'append', outcome: 'ok' })
    let waiting = 3
    const takeBack = telemetry.gauge('postgres_pool_waiting', () => waiting)
    telemetry.gauge('postgres_pool_waiting', () => 10)
    waiting = 4

    const text = await registry.metrics()
    expect(text).toContain('\nredis_reconnects_total 3\n')
    expect(text).toContain('postgres_query_duration_seconds_bucket{le="0.00025",query="append",outcome="ok"} 0\n')
    expect(text).toContain('postgres_query_duration_seconds_bucket{le="0.0005",query="append",outcome="ok"} 1\n')
    expect(text).toContain('\npostgres_pool_waiting 14\n')

    takeBack()
    expect(await registry.metrics()).toContain('\npostgres_pool_waiting 10\n')
  })

  it('never throws at the hot path: a mistake is logged once', () => {
    const lines: string[] = []
    const { telemetry } = createMetrics(pino({}, { write: (line: string) => void lines.push(line) }))
    telemetry.count('no_such_metric' as 'redis_reconnects_total')
    telemetry.count('redis_reconnects_total', { wallet: 'user_42' })
    telemetry.count('redis_reconnects_total', { wallet: 'user_43' })
    telemetry.observe('postgres_query_duration_seconds', Number.NaN, { query: 'x', outcome: 'ok' })
    expect(lines.map((line) => JSON.parse(line).metric)).toEqual([
      'redis_reconnects_total',
      'postgres_query_duration_seconds',
    ])
  })

  it('has bounded labels only, and names that Prometheus expects', () => {
    const unbounded = /wallet|user|tenant|key|hold|sale|checkout|url|path|email|address|id$/
    for (const [name, { type, labels }] of TABLE) {
      expect(name).toMatch(/^[a-z]+(_[a-z]+)+$/)
      expect([name, type === 'counter']).toEqual([name, name.endsWith('_total')])
      expect([name, labels.filter((label) => unbounded.test(label))]).toEqual([name, []])
    }
  })

  // `npx vitest run packages/server/test/metrics.test.ts --update` writes the page.
  it('is what docs/reference/metrics.md says', async () => {
    const page = fileURLToPath(new URL('../../../docs/reference/metrics.md', import.meta.url))
    await expect(metricsPage()).toMatchFileSnapshot(page)
  })
})

function metricsPage(): string {
  const lines = [
    '# Metrics',
    '',
    'Written from `packages/holdfast/src/telemetry/metrics.ts` and `packages/server/src/metrics/http.ts`; a test keeps them in step.',
    '',
    '`GET /metrics` answers in the text format of Prometheus. Beside what is listed here it has the usual metrics of the process',
    '(`process_…`: processor, memory, open files) and of Node (`nodejs_…`: event loop, garbage collection).',
    '',
    'Labels are bounded sets: a script, a route pattern, an outcome. No metric is labelled with a tenant, a wallet or a key.',
    'Without the server the same comes through the hooks of `Telemetry`, to be bound to whatever you use.',
    '',
    '| metric | type | labels | what |',
    '|---|---|---|---|',
  ]
  for (const [name, { type, labels, help }] of TABLE) {
    lines.push(`| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${help} |`)
  }
  return `${lines.join('\n')}\n`
}
