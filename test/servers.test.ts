import { Redis } from 'ioredis'
import { Client } from 'pg'
import { expect, test } from 'vitest'
import { freshDatabase, freshRedis } from './servers.js'

test('two fresh databases share nothing', async () => {
  const [one, other] = await Promise.all([freshDatabase(), freshDatabase()])
  const clients = [one, other].map((connectionString) => new Client({ connectionString }))
  try {
    for (const client of clients) {
      await client.connect()
      await client.query('CREATE TABLE only_here (id int)')
    }
  } finally {
    await Promise.all(clients.map((client) => client.end()))
  }
  expect(one).not.toBe(other)
})

test('two fresh Redis databases share nothing', async () => {
  const [one, other] = (await Promise.all([freshRedis(), freshRedis()])).map((url) => new Redis(url))
  try {
    await one?.set('key', 'value')
    expect(await other?.get('key')).toBeNull()
  } finally {
    one?.disconnect()
    other?.disconnect()
  }
})
