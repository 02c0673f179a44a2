export { type AppOptions, createApp } from './app.js'
export { Readiness } from './health/index.js'
export { createLogger } from './logging/index.js'
export { createMetrics, type Metrics } from './metrics/index.js'
