import { METRICS, type MetricName, type Telemetry } from 'holdfast'
import type { Logger } from 'pino'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { HTTP_METRICS } from './http.js'

interface MetricRow {
  type: 'counter' | 'gauge' | 'histogram'
  labels: readonly string[]
  help: string
}

export type ServerMetricName = MetricName | keyof typeof HTTP_METRICS

/** What the library needs, for the server's own metrics too. */
export interface ServerTelemetry extends Telemetry {
  observe(metric: ServerMetricName, value: number, labels?: Record<string, string>): void
  count(metric: ServerMetricName, labels?: Record<string, string>, by?: number): void
  gauge(metric: ServerMetricName, read: () => number, labels?: Record<string, string>): () => void
}

export interface Metrics {
  registry: Registry
  telemetry: ServerTelemetry
}

/** From a tenth of a millisecond (a Redis call on the same machine) to ten seconds (a timeout). */
const SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048]

/** One registry, made from the tables: a metric that is not in them does not exist. */
export function createMetrics(logger: Logger): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const counters = new Map<string, Counter>()
  const histograms = new Map<string, Histogram>()
  const gauges = new Map<string, LiveGauge>()

  for (const [name, { type, labels, help }] of Object.entries<MetricRow>({ ...METRICS, ...HTTP_METRICS })) {
    const options = { name, help, labelNames: [...labels], registers: [registry] }
    if (type === 'counter') counters.set(name, new Counter(options))
    if (type === 'gauge') gauges.set(name, new LiveGauge(options))
    if (type === 'histogram') {
      histograms.set(name, new Histogram({ ...options, buckets: name.endsWith('_seconds') ? SECONDS : SIZES }))
    }
  }

  // Telemetry may not throw: a wrong label is a mistake to hear of once, not a failed operation.
  const refused = new Set<string>()
  const safely = (metric: string, record: () => void) => {
    try {
      record()
    } catch (error) {
      if (refused.has(metric)) return
      refused.add(metric)
      logger.error({ metric, err: error }, 'metric_refused')
    }
  }

  return {
    registry,
    telemetry: {
      count: (metric, labels = {}, by = 1) => safely(metric, () => counters.get(metric)?.inc(labels, by)),
      observe: (metric, value, labels = {}) => safely(metric, () => histograms.get(metric)?.observe(labels, value)),
      gauge: (metric, read, labels = {}) => gauges.get(metric)?.add(read, labels) ?? (() => {}),
      log: (level, event, facts) => logger[level](facts ?? {}, event),
    },
  }
}

interface Reading {
  labels: Record<string, string>
  read: () => number
}

/** A gauge that is read when Prometheus asks. Several readings under the same labels (two pools) add up. */
class LiveGauge {
  readonly #readings = new Set<Reading>()

  constructor(options: { name: string; help: string; labelNames: string[]; registers: Registry[] }) {
    const readings = this.#readings
    new Gauge({
      ...options,
      collect() {
        this.reset()
        for (const { labels, read } of readings) this.inc(labels, read())
      },
    })
  }

  add(read: () => number, labels: Record<string, string>): () => void {
    const reading = { read, labels }
    this.#readings.add(reading)
    return () => this.#readings.delete(reading)
  }
}
