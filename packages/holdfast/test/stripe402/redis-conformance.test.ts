/** The suite on every kind of Redis that the store can be used with. */
import { RedisStore } from 'holdfast/stripe402'
import { testLedgerStore } from 'holdfast/stripe402/conformance'
import { Cluster, Redis } from 'ioredis'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { freshRedis, sharedCluster } from '../../../../test/servers.js'

const KINDS = {
  'a single server': async () => new Redis(await freshRedis()),
  'a single server with a prefix and replies of RESP3': async () =>
    new Redis(await freshRedis(), { keyPrefix: 'app*:', protocol: 3, replyMapping: 'resp3', stringNumbers: true }),
  'a Cluster': async () => new Cluster(await sharedCluster()),
  'a Cluster with a prefix': async () => new Cluster(await sharedCluster(), { keyPrefix: 'app:' }),
  'a Cluster with a prefix that is a tag': async () => new Cluster(await sharedCluster(), { keyPrefix: '{app}:' }),
}

describe.each(Object.entries(KINDS))('on %s', (_, connect) => {
  let redis: Redis | Cluster
  beforeAll(async () => {
    redis = await connect()
  })
  afterAll(() => redis.disconnect())

  testLedgerStore({ test, makeStore: () => new RedisStore(redis) })
})

describe('on a Cluster with tagged keys', () => {
  let redis: Cluster
  beforeAll(async () => {
    redis = new Cluster(await sharedCluster())
  })
  afterAll(() => redis.disconnect())

  testLedgerStore({ test, makeStore: () => new RedisStore(redis, { tagged: true }) })
})
