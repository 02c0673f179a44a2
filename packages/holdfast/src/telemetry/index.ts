import type { MetricName } from './metrics.js'

export { METRICS, type MetricName } from './metrics.js'

export type Labels = Record<string, string>
export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/**
 * What the library tells about itself. Everything is optional, and nothing here may throw or wait: it is called on the hot path.
 * The server binds it to Prometheus and pino; without it the library is silent.
 */
export interface Telemetry {
  /** A counter of `METRICS` grew. */
  count?(metric: MetricName, labels?: Labels, by?: number): void
  /** A histogram of `METRICS` saw a value (seconds, or a size). */
  observe?(metric: MetricName, value: number, labels?: Labels): void
  /** A gauge of `METRICS` that is read when somebody asks. Returns how to take it back. */
  gauge?(metric: MetricName, read: () => number, labels?: Labels): () => void
  /** Something an operator may want to know. Facts carry no secrets and no personal data. */
  log?(level: LogLevel, event: string, facts?: Record<string, unknown>): void
}
