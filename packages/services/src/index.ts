export { type DevServices, type DevServicesOptions, openDevServices } from './dev.js'
export { ServicesError } from './error.js'
export { type PostgresHandle, type PostgresOptions, type PostgresSource, startPostgres } from './postgres/index.js'
export {
  INSTALL_REDIS,
  type RedisClusterHandle,
  type RedisClusterOptions,
  type RedisHandle,
  type RedisNode,
  type RedisOptions,
  type RedisSentinelHandle,
  type RedisSentinelOptions,
  type RedisSource,
  startRedis,
  startRedisCluster,
  startRedisSentinel,
} from './redis/index.js'
