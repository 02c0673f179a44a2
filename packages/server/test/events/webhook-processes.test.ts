import { describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { holdfast, run } from '../support/holdfast.js'
import { isSigned, Receiver } from '../support/receiver.js'

async function servers(count: number) {
  const env = {
    REDIS_URL: await freshRedis(),
    DATABASE_URL: await freshDatabase(),
    HOLDFAST_WEBHOOK_HOSTS: '127.0.0.1',
  }
  const { key } = JSON.parse((await run(['keys', 'create', '--json'], { env })).stdout) as { key: string }
  const processes = await Promise.all(
    Array.from({ length: count }, () => holdfast(['serve', '--port', '0', '--log-level', 'warn'], { env })),
  )
  const urls = await Promise.all(processes.map((one) => one.ready()))
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const send = (url: string, method: string, path: string, body: object, name = '') =>
    fetch(`${url}${path}`, {
      method,
      headers: { ...headers, ...(name !== '' && { 'idempotency-key': name }) },
      body: JSON.stringify(body),
    })
  return { env, processes, urls: urls as [string, ...string[]], send }
}

describe('two servers', () => {
  it('one of them tells, each event once; when it is killed the other goes on and leaves nothing out', async () => {
    const { processes, urls, send } = await servers(2)
    const [one, two] = urls as [string, string]
    const receiver = await Receiver.start()
    await send(one, 'POST', '/v1/webhooks', { url: receiver.url, events: ['entry.appended'] })
    for (const id of ['a', 'b', 'c']) await send(two, 'PUT', `/v1/wallets/${id}`, { currency: 'usd' })
    const credits = async (from: number, to: number, url: string) => {
      const all = []
      for (let n = from; n <= to; n += 1) {
        for (const id of ['a', 'b', 'c']) {
          all.push(send(url, 'POST', `/v1/wallets/${id}/credits`, { amount: 1 }, `k${n}`).then(({ status }) => status))
        }
      }
      expect(new Set(await Promise.all(all))).toEqual(new Set([200]))
    }
    await credits(1, 20, two)
    await receiver.until(({ taken }) => taken.length >= 60)
    const upTo = (count: number) => Array.from({ length: count }, (_, n) => n + 1)
    // While nobody dies, nothing is told twice, although both servers look.
    for (const id of ['a', 'b', 'c']) expect(receiver.seqs(id)).toEqual(upTo(20))

    // The one that delivers is killed, while it waits for an answer.
    const delivers = await Promise.all(
      urls.map(async (url) =>
        /webhook_deliveries_total\{.*"delivered"\} [1-9]/.test(await (await fetch(`${url}/metrics`)).text()),
      ),
    )
    expect(delivers.filter(Boolean)).toHaveLength(1)
    const holder = delivers.indexOf(true)
    const other = urls[1 - holder] as string
    receiver.answer = () => 0
    await credits(21, 40, other)
    await receiver.until(({ received }) => received.length > 60)
    processes[holder]?.signal('SIGKILL')
    receiver.answer = () => 200
    await receiver.until(() => ['a', 'b', 'c'].every((id) => new Set(receiver.seqs(id)).size === 40))
    for (const id of ['a', 'b', 'c']) expect([...new Set(receiver.seqs(id))]).toEqual(upTo(40))
    expect((await processes[1 - holder]?.stop())?.code).toBe(0)
  })
})

describe('the command', () => {
  it('makes, lists, replays and deletes webhooks, and shows a secret once', async () => {
    const { env, urls, send } = await servers(1)
    const receiver = await Receiver.start()
    receiver.answer = () => 500
    const made = await run(
      ['webhooks', 'create', '--url', receiver.url, '--events', 'entry.appended', '--wallet-prefix', 'a', '--json'],
      { env },
    )
    expect([made.code, made.stderr]).toEqual([0, ''])
    const { id, secret } = JSON.parse(made.stdout) as { id: string; secret: string }
    await send(urls[0], 'PUT', '/v1/wallets/a', { currency: 'usd' })
    await send(urls[0], 'POST', '/v1/wallets/a/credits', { amount: 1 }, 'k')
    await receiver.until(({ received }) => received.length > 0)
    expect(isSigned(receiver.received[0] as (typeof receiver.received)[0], secret)).toBe(true)

    // That it was not taken is written down a moment after it was told.
    const list = async () => (await run(['webhooks', 'list'], { env })).stdout
    const row = new RegExp(`^${id} +default +${receiver.url} +entry.appended +a… +1 +0 +good$`, 'm')
    await expect.poll(list, { timeout: 20_000 }).toMatch(row)
    const listed = await list()
    expect(listed).toMatch(/^id +tenant +url +events +wallets +waiting +dead +state$/m)
    expect(listed).not.toContain(secret)

    expect((await run(['webhooks', 'dead', id], { env })).stdout).toBe('Nothing is dead.\n')
    const client = new (await import('pg')).default.Client(env.DATABASE_URL)
    await client.connect()
    // Again where it was just being told: what comes of that is written over it.
    const dead = async () => {
      await client.query("UPDATE holdfast.webhook_deliveries SET dead_at = 1700000000000, reason = 'status 500'")
      return (await run(['webhooks', 'dead', id], { env })).stdout
    }
    const buried = /^\d+ +entry.appended +\d+ +2023-11-14 22:13 +status 500$/m
    await expect.poll(dead, { timeout: 20_000 }).toMatch(buried)
    await client.end()
    receiver.answer = () => 204
    expect((await run(['webhooks', 'replay', id], { env })).stdout).toBe('1 event is told again, for another day.\n')
    await receiver.until(({ taken }) => taken.length === 1)
    expect((await run(['webhooks', 'delete', id, '--json'], { env })).code).toBe(0)
    expect((await run(['webhooks', 'list'], { env })).stdout).toContain('There are no webhooks')
  })

  it.each([
    [['create'], '--url: expected a URL', 2],
    [['create', '--url', 'http://example.com'], '--url: expected https, got http://', 1],
    [['create', '--url', 'https://example.com', '--events', 'all'], '--events: expected some of entry.appended', 2],
    [['replay', 'nothing'], 'id: expected that of a webhook, got another', 1],
    [['delete'], "missing required argument 'id'", 2],
  ])('says what is wrong: %j', async (args, message, code) => {
    const env = { DATABASE_URL: await freshDatabase() }
    const ended = await run(['webhooks', ...args], { env })
    expect([ended.code, ended.stdout]).toEqual([code, ''])
    expect(ended.stderr).toContain(message)
  })
})
