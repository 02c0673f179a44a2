export { INSTALL_REDIS, type RedisSource } from './binaries.js'
export type { RedisNode } from './node.js'
export { type RedisHandle, type RedisOptions, startRedis } from './single.js'
