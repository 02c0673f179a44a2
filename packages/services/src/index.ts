export { type DevServices, type DevServicesOptions, openDevServices } from './dev.js'
export { ServicesError } from './error.js'
export { type PostgresHandle, type PostgresOptions, type PostgresSource, startPostgres } from './postgres/index.js'
export { type RedisHandle, type RedisNode, type RedisOptions, type RedisSource, startRedis } from './redis/index.js'
