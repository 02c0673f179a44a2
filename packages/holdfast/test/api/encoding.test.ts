import pg from 'pg'
import { expect, it } from 'vitest'
import { emptyDatabase, freshRedis } from '../../../../test/servers.js'
import { Holdfast } from '../../src/index.js'

it('a database that can not hold every key is refused before anything is decided', async () => {
  const url = new URL(await emptyDatabase())
  const client = new pg.Client(url.href)
  await client.connect()
  const name = `latin_${url.pathname.slice(1)}`
  await client.query(`CREATE DATABASE ${name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`)
  await client.end()
  url.pathname = `/${name}`
  await expect(Holdfast.connect({ redis: await freshRedis(), postgres: url.href })).rejects.toMatchObject({
    code: 'incompatible',
    message: "The database is encoded in LATIN1, which can't hold every key: expected UTF8",
  })
})
