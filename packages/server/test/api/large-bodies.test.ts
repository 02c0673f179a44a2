import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import { SCOPES } from '../../src/access/index.js'
import { Api } from '../support/api.js'

let api: Api
let keys: string[]
beforeAll(async () => {
  api = await Api.start()
  keys = await Promise.all(['one', 'two', 'three'].map((tenant) => api.key(SCOPES, { tenant })))
})

const TERMS = { perUser: 1, startsAt: 0, endsAt: Date.now() + 3_600_000 }
const itemsOf = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ id: `item-${String(n).padStart(15, '0')}` }))
const open = (key: string, sale: string, count: number) =>
  api.as(key)('PUT', `/v1/sales/${sale}`, { body: { ...TERMS, items: itemsOf(count) } })

/** Somebody who has begun to send a body, and does not go on. */
async function begin(key: string, path: string, length: string): Promise<Socket> {
  const { hostname, port } = new URL(api.url)
  const socket = connect(Number(port), hostname)
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  const head = [`PUT ${path} HTTP/1.1`, 'Host: test', `Authorization: Bearer ${key}`, 'Content-Type: application/json']
  socket.write(`${[...head, length].join('\r\n')}\r\n\r\n{`)
  return socket
}

it('reads few large lists of items at a time, of a tenant one, and lets all others through', async () => {
  const [one, two, three] = keys as [string, string, string]
  const first = await begin(one, '/v1/sales/a', 'Content-Length: 300000')
  await expect.poll(async () => (await open(one, 'a', 9_000)).status, { timeout: 20_000 }).toBe(429)
  const refused = await open(one, 'a', 9_000)
  expect(refused.body).toMatchObject({ code: 'rate_limited', limit: 1, retryAfter: 1 })
  expect(refused.body.detail).toMatch(/expected one body of more than 262144 bytes at a time.*got another/)
  expect(refused.headers.get('retry-after')).toBe('1')
  // What is small does not wait, and neither do others.
  expect((await open(one, 'small', 10)).status).toBe(200)
  expect((await open(two, 'a', 9_000)).status).toBe(200)

  // Of unknown length is taken for large; for a schedule as for a sale.
  const second = await begin(two, '/v1/sale-schedules/s', 'Transfer-Encoding: chunked')
  await expect.poll(async () => (await open(three, 'a', 9_000)).status, { timeout: 20_000 }).toBe(429)
  expect((await open(three, 'a', 9_000)).body).toMatchObject({ code: 'rate_limited', limit: 2 })
  first.destroy()
  await expect.poll(async () => (await open(three, 'a', 9_000)).status, { timeout: 20_000 }).toBe(200)
  second.destroy()
}, 60_000)
