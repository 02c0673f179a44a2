export { checkServer, inspectServer, type ServerCheck, type ServerFinding } from './check-server.js'
export { isOfData, PostgresError, type PostgresOutcome } from './failure.js'
export { checkMigrated, type MigrateOptions, type Migration, type MigrationReport, migrate } from './migrate.js'
export {
  type Guard,
  Postgres,
  type PostgresOptions,
  type QueryName,
  type Transaction,
} from './pool.js'
export type { SessionOptions, SettingsScope } from './session.js'
export { type DatabaseSettings, readSettings, readStop } from './settings.js'
export type { PostgresSource } from './source.js'
export { type Statement, Statements, type StatementsOptions } from './statements.js'
export { type CallersClient, callWithin } from './within.js'
