/** Pairs of a hold and its settle over HTTP, by autocannon: connections that are kept, a request at a time on each. */
import autocannon from 'autocannon'
import { HOLD_AMOUNT, HOLD_TTL_MS, SETTLE_TOTAL } from '../harness/contender.js'
import { Latencies } from '../harness/latency.js'

export interface Asked {
  readonly url: string
  readonly apiKey: string
  readonly connections: number
  readonly wallets: number
  readonly until: Until
  /** Makes the keys of this run unlike all others. */
  readonly name: string
}

/** Whole seconds, or so many requests. */
export type Until = { readonly duration: number } | { readonly amount: number }

export interface LoadResult {
  readonly requests: number
  readonly requestsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Answers that were no yes, and requests without one. */
  readonly failed: number
}

interface Pair {
  number?: number
}

const HOLD_BODY = JSON.stringify({ amount: HOLD_AMOUNT, ttl: HOLD_TTL_MS })
const SETTLE_BODY = JSON.stringify({ total: SETTLE_TOTAL })

export async function load({ url, apiKey, connections, wallets, until, name }: Asked): Promise<LoadResult> {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }
  const latencies = new Latencies()
  let pairs = 0
  const pathOf = ({ number = 0 }: Pair) => `/v1/wallets/wallet-${number % wallets}/holds`
  const options: autocannon.Options = {
    url,
    connections,
    ...until,
    requests: [
      {
        method: 'POST',
        setupRequest(request, pair: Pair) {
          pair.number = pairs++
          const key = { 'idempotency-key': `${name}-${pair.number}` }
          return { ...request, path: pathOf(pair), headers: { ...headers, ...key }, body: HOLD_BODY }
        },
      },
      {
        method: 'POST',
        setupRequest(request, pair: Pair) {
          const hold = `${name}-${pair.number}`
          const key = { 'idempotency-key': `${hold}-end` }
          const path = `${pathOf(pair)}/${hold}/settle`
          return { ...request, path, headers: { ...headers, ...key }, body: SETTLE_BODY }
        },
      },
    ],
  }
  const result = await new Promise<autocannon.Result>((resolve, reject) => {
    const running = autocannon(options, (error, done) => (error ? reject(error) : resolve(done)))
    running.on('response', (_client, _status, _bytes, ms) => latencies.record(ms))
  })
  const { requests, duration, non2xx, errors, timeouts } = result
  return {
    requests: requests.total,
    requestsPerSecond: requests.total / duration,
    p50Ms: latencies.percentile(50),
    p99Ms: latencies.percentile(99),
    failed: non2xx + errors + timeouts,
  }
}
