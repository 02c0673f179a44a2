export { HTTP_METRICS } from './http.js'
export { createMetrics, type Metrics, type ServerTelemetry } from './registry.js'
