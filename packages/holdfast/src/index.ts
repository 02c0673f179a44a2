export { ERRORS, type ErrorCode, type Facts, HoldfastError } from './errors/index.js'
export { METRICS, type MetricName, type Telemetry } from './telemetry/index.js'
export * from './postgres/index.js'
