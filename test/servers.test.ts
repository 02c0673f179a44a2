import { Cluster, Redis } from 'ioredis'
import { Client } from 'pg'
import { expect, test } from 'vitest'
import { emptyDatabase, freshDatabase, freshRedis, sharedCluster, sharedSentinel } from './servers.js'

async function query(connectionString: string, statement: string): Promise<unknown[]> {
  const client = new Client({ connectionString })
  await client.connect()
  try {
    return (await client.query(statement)).rows
  } finally {
    await client.end()
  }
}

const SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname = 'holdfast'"

test('fresh databases are migrated and share nothing', async () => {
  const databases = await Promise.all([freshDatabase(), freshDatabase()])
  for (const url of databases) {
    expect(await query(url, SCHEMAS)).toHaveLength(1)
    await query(url, 'CREATE TABLE only_here (id int)')
  }
})

test('an empty database has no schema of ours', async () => {
  expect(await query(await emptyDatabase(), SCHEMAS)).toHaveLength(0)
})

test('fresh Redis databases share nothing', async () => {
  const one = new Redis(await freshRedis())
  const other = new Redis(await freshRedis())
  try {
    await one.set('key', 'value')
    expect(await other.get('key')).toBeNull()
  } finally {
    one.disconnect()
    other.disconnect()
  }
})

test('the shared Sentinel group and Cluster take writes', async () => {
  const clients = [new Redis(await sharedSentinel()), new Cluster(await sharedCluster())]
  try {
    for (const client of clients) expect(await client.set('servers.test', '1')).toBe('OK')
  } finally {
    for (const client of clients) client.disconnect()
  }
})
