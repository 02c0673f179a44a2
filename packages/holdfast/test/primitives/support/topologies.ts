/**
 * What tests of primitives stand on: the same tests on a single server and on a Cluster, each with keys of its own.
 *
 *   describe.each(TOPOLOGIES)('on %s', (_, open) => {
 *     let on: On
 *     beforeAll(async () => { on = await open() })
 *     afterAll(() => on.close())
 *     it('missing key: …', async () => { const login = new FixedWindow(on.primitives, on.operation()) })
 *   })
 */
import { Cluster, Redis } from 'ioredis'
import { freshDatabase, freshRedis, sharedCluster } from '../../../../../test/servers.js'
import { Primitives, type PrimitivesOptions } from '../../../src/primitives/index.js'
import type { Labels, MetricName } from '../../../src/telemetry/index.js'
import { PATIENT } from './patient.js'

export const SECRET = 'a secret of tests, long enough'

export interface On {
  readonly primitives: Primitives
  /** For what a test looks at or spoils by hand. */
  readonly redis: Redis | Cluster
  /** An operation that nobody else uses: the Cluster is shared. */
  operation(): string
  /** How often a result was counted since the last call. */
  counted(primitive: string): Record<string, number>
  /** Keys of an operation, by its name; there are none of others in between. */
  keys(operation: string): Promise<string[]>
  readonly logged: { readonly event: string; readonly facts: Record<string, unknown> }[]
  close(): Promise<void>
}

export type Given = Partial<PrimitivesOptions> & { readonly withPostgres?: boolean }

async function open(redis: Redis | Cluster, { withPostgres = false, ...given }: Given): Promise<On> {
  let counts = new Map<string, Record<string, number>>()
  let operations = 0
  const logged: On['logged'] = []
  const primitives = await Primitives.connect({
    redis,
    secret: SECRET,
    ...PATIENT,
    ...(withPostgres && { postgres: await freshDatabase() }),
    ...given,
    telemetry: {
      count(metric: MetricName, labels: Labels = {}, by = 1) {
        if (metric !== 'holdfast_primitive_results_total') return
        const { primitive = '', result = '' } = labels
        const results = counts.get(primitive) ?? {}
        counts.set(primitive, { ...results, [result]: (results[result] ?? 0) + by })
      },
      log(_, event, facts = {}) {
        logged.push({ event, facts })
      },
      ...given.telemetry,
    },
  })
  return {
    primitives,
    redis,
    logged,
    operation: () => `test-${process.pid}-${Date.now()}-${operations++}`,
    counted(primitive) {
      const results = counts.get(primitive) ?? {}
      counts = new Map([...counts].filter(([name]) => name !== primitive))
      return results
    },
    async keys(operation) {
      const nodes = redis instanceof Cluster ? redis.nodes('master') : [redis]
      const found = await Promise.all(nodes.map((node) => node.keys(`hf:*:${operation}:*`)))
      return found.flat().sort()
    },
    async close() {
      await primitives.close()
      redis.disconnect()
    },
  }
}

type Open = (given?: Given) => Promise<On>

export const onSingle: Open = async (given = {}) => open(new Redis(await freshRedis()), given)

export const onCluster: Open = async (given = {}) => {
  const redis = new Cluster(await sharedCluster())
  // `nodes` knows them once it has connected.
  await redis.ping()
  return open(redis, given)
}

export const TOPOLOGIES: readonly (readonly [string, Open])[] = [
  ['a single server', onSingle],
  ['a Cluster', onCluster],
]
