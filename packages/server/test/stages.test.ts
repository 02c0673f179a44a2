import { expect, it, vi } from 'vitest'
import { freshDatabase, freshRedis } from '../../../test/servers.js'
import { holdfast, run } from './support/holdfast.js'

it('every stage that an operation goes through is measured, and so are sweeper and auditor', async () => {
  const env = { REDIS_URL: await freshRedis(), DATABASE_URL: await freshDatabase() }
  const server = await holdfast(['serve', '--port', '0', '--audit-interval-ms', '1000'], { env })
  const url = await server.ready()
  const { key } = JSON.parse((await run(['keys', 'create', '--json'], { env })).stdout)
  const ask = (method: string, path: string, body: object) =>
    fetch(`${url}/v1/wallets/alice${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'idempotency-key': path || 'open',
      },
      body: JSON.stringify(body),
    })
  expect((await ask('PUT', '', { currency: 'usd' })).status).toBe(200)
  expect((await ask('POST', '/credits', { amount: 100 })).status).toBe(200)
  expect((await ask('POST', '/holds', { amount: 10, ttl: 60_000 })).status).toBe(200)
  expect((await ask('POST', '/debits', { amount: 1_000 })).status).toBe(409)

  await vi.waitFor(async () => {
    const text = await (await fetch(`${url}/metrics`)).text()
    for (const series of [
      'http_request_duration_seconds_count{method="POST",route="/v1/wallets/:id/holds",status="2xx"}',
      'http_request_duration_seconds_count{method="POST",route="/v1/wallets/:id/debits",status="4xx"}',
      'holdfast_queue_wait_seconds_count{stage="decide"}',
      'holdfast_batch_size_count{stage="decide"}',
      'redis_command_duration_seconds_count{command="wallet_decide",outcome="ok"}',
      'holdfast_decisions_total{answer="accepted"}',
      'holdfast_decisions_total{answer="rejected"}',
      'holdfast_queue_wait_seconds_count{stage="append"}',
      'holdfast_batch_size_count{stage="append"}',
      'postgres_query_duration_seconds_count{query="appendOne",outcome="ok"}',
      'postgres_query_duration_seconds_count{query="confirm",outcome="ok"}',
      'holdfast_entries_total{verdict="appended"}',
      'holdfast_sweeps_total{outcome="done"}',
      'holdfast_sweep_duration_seconds_count',
      'holdfast_swept_wallets_total{where="hot"}',
      'holdfast_audits_total{outcome="done"}',
      'holdfast_audit_wallets_total{where="journal"}',
    ]) {
      const at = text.indexOf(`\n${series} `)
      expect([series, at >= 0 && Number(/ (\S+)/.exec(text.slice(at + series.length))?.[1]) > 0]).toEqual([
        series,
        true,
      ])
    }
    expect(text).toMatch(/^holdfast_circuit_open\{dependency="redis"\} 0$/m)
    expect(text).toMatch(/^holdfast_backlog_entries 0$/m)
  }, 90_000)
})
