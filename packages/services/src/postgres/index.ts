export type { PostgresSource } from './binaries.js'
export { type PostgresHandle, type PostgresOptions, startPostgres } from './start.js'
