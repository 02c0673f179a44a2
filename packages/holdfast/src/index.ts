export { ERRORS, type ErrorCode, type Facts, HoldfastError } from './errors/index.js'
export {
  checkMigrated,
  checkServer,
  type MigrationReport,
  migrate,
  Postgres,
  PostgresError,
  type PostgresOptions,
  type PostgresOutcome,
  type PostgresSource,
  readSettings,
  type ServerFinding,
} from './postgres/index.js'
export { RedisConnection } from './redis/index.js'
export { METRICS, type MetricName, type Telemetry } from './telemetry/index.js'
