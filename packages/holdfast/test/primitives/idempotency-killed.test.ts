/** Real processes, killed at every place on the way: there is one effect all the same. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { Idempotency } from 'holdfast/primitives'
import { Cluster } from 'ioredis'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import type { Orders, Place } from './support/idempotent-worker.js'
import { type On, SECRET, TOPOLOGIES } from './support/topologies.js'

const FOLDER = fileURLToPath(new URL('../../../../node_modules/.cache/holdfast', import.meta.url))
const WORKER = join(FOLDER, `idempotent-worker-${process.pid}.mjs`)
const LEASE_MS = 500

beforeAll(async () => {
  mkdirSync(FOLDER, { recursive: true })
  await build({
    entryPoints: [fileURLToPath(new URL('support/idempotent-worker.ts', import.meta.url))],
    outfile: WORKER,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: 'external',
    logLevel: 'warning',
    alias: { 'holdfast/primitives': fileURLToPath(new URL('../../src/primitives/index.ts', import.meta.url)) },
  })
})
afterAll(() => rmSync(WORKER, { force: true }))

function urlOf({ redis }: On): string {
  if (!(redis instanceof Cluster)) return `redis://${redis.options.host}:${redis.options.port}/${redis.options.db}`
  const nodes = redis.nodes('master').map(({ options }) => `${options.host}:${options.port}`)
  return `redis+cluster://${nodes.join(',')}`
}

async function liveAndDie(orders: Orders): Promise<void> {
  const child = fork(WORKER, [JSON.stringify(orders)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
}

describe.each(TOPOLOGIES)('a process that is killed, on %s', (_, open) => {
  let on: On
  let postgres: string
  let pool: pg.Pool
  beforeAll(async () => {
    postgres = await freshDatabase()
    pool = new pg.Pool({ connectionString: postgres, max: 2 })
    await pool.query('CREATE TABLE effects (operation text, process integer)')
    on = await open({ postgres })
  })
  afterAll(async () => {
    await pool.end()
    await on.close()
  })

  it.each<[Place, string]>([
    ['claimed', 'attempt 2'],
    ['effect', 'attempt 2'],
    ['completed', 'attempt 2'],
    ['committed', 'attempt 1'],
  ])(
    'when it has come to %s: the answer is that of %s, and there is one effect',
    async (dieAt, response) => {
      const operation = on.operation()
      await liveAndDie({ redis: urlOf(on), postgres, secret: SECRET, operation, leaseMs: LEASE_MS, dieAt })
      const next = new Idempotency<string>(on.primitives, operation, { durable: true, leaseMs: LEASE_MS })
      const answer = () =>
        next.run('key', {}, async ({ completeIn, attempt }) => {
          const client = await pool.connect()
          await client.query('BEGIN')
          await client.query('INSERT INTO effects VALUES ($1, $2)', [operation, process.pid])
          await completeIn(client, `attempt ${attempt}`)
          await client.query('COMMIT')
          client.release()
          return `attempt ${attempt}`
        })
      // Until the lease has run out somebody may be at it; then it is done here, or found to be done.
      await expect
        .poll(answer, { timeout: 20_000 })
        .toEqual({ result: 'completed', response, replayed: dieAt === 'committed' })
      const { rows } = await pool.query('SELECT process FROM effects WHERE operation = $1', [operation])
      expect(rows).toHaveLength(1)
      expect(rows[0].process === process.pid).toBe(dieAt !== 'committed')
    },
    60_000,
  )
})
