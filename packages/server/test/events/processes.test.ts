import { migrate, Postgres } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { RestorablePostgres } from '../../../holdfast/test/reconcile/support/restorable.js'
import { Api, openWallet } from '../support/api.js'
import { holdfast, run } from '../support/holdfast.js'
import { EventReader } from '../support/sse.js'

const seqs = ({ events }: EventReader): number[] => events.map(({ data }) => data.entry.seq)

describe('two servers', () => {
  it('one is killed under load: who listened there goes on at the other, and misses nothing', async () => {
    const env = { REDIS_URL: await freshRedis(), DATABASE_URL: await freshDatabase() }
    const { key } = JSON.parse((await run(['keys', 'create', '--json'], { env })).stdout) as { key: string }
    const [first, second] = [
      await holdfast(['serve', '--port', '0'], { env }),
      await holdfast(['serve', '--port', '0'], { env }),
    ]
    const [one, two] = [await first.ready(), await second.ready()]
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    await fetch(`${two}/v1/wallets/busy`, { method: 'PUT', headers, body: '{"currency":"usd"}' })
    const killed = await EventReader.open(one, key)
    const whole = await EventReader.open(two, key)

    let acknowledged = 0
    let stopping = false
    const writers = Array.from({ length: 8 }, async (_, lane) => {
      for (let n = 0; !stopping; n += 1) {
        // Half of it by the one that dies: what it leaves behind is found by the other.
        const url = lane % 2 === 0 && !killed.ended ? one : two
        const asked = {
          method: 'POST',
          headers: { ...headers, 'idempotency-key': `${lane}-${n}` },
          body: '{"amount":1}',
        }
        const response = await fetch(`${url}/v1/wallets/busy/credits`, asked).catch(() =>
          fetch(`${two}/v1/wallets/busy/credits`, asked),
        )
        if (response.ok) acknowledged += 1
        await response.text()
      }
    })
    await killed.until((events) => events.length > 50)
    first.signal('SIGKILL')
    await killed.end()
    const seen = seqs(killed)
    const back = await EventReader.open(two, key, { lastEventId: killed.lastEventId })
    const before = acknowledged
    await expect.poll(() => acknowledged, { timeout: 20_000 }).toBeGreaterThan(before + 50)
    stopping = true
    await Promise.all(writers)

    const wallet = (await (await fetch(`${two}/v1/wallets/busy`, { headers })).json()) as { seq: number }
    const all = Array.from({ length: wallet.seq }, (_, n) => n + 1)
    await whole.until((events) => events.length >= wallet.seq)
    await back.until((events) => events.at(-1)?.data.entry.seq === wallet.seq)
    expect(seqs(whole)).toEqual(all)
    // At least once: an event may have been sent whose place had not arrived with it.
    const again = seqs(back)
    expect([...seen, ...again.filter((seq) => !seen.includes(seq))]).toEqual(all)
    expect(again).toEqual(all.slice((again[0] as number) - 1))

    // A stop ends streams between two events, and waits for nobody.
    const ended = await second.stop()
    expect(ended.code).toBe(0)
    await Promise.all([whole.end(), back.end()])
  })
})

describe('Postgres is put back to how it was', () => {
  it('who saw more than there is now is told so; who did not goes on', { timeout: 60_000 }, async () => {
    const postgres = await RestorablePostgres.start()
    try {
      const preparing = new Postgres(postgres.url)
      await migrate(preparing)
      await preparing.close()
      const api = await Api.start({ databaseUrl: postgres.url, streams: { heartbeatMs: 100 } })
      const key = await api.key()
      const call = api.as(key)
      const reader = await EventReader.open(api.url, key)
      const path = await openWallet(call, 5)
      await reader.until((events) => events.length === 1)
      const [before] = reader.events
      await postgres.snapshot()
      await expect
        .poll(async () => (await call('POST', `${path}/credits`, { body: { amount: 1 }, key: 'lost' })).status, {
          timeout: 20_000,
        })
        .toBe(200)
      await reader.until((events) => events.length === 2)
      await postgres.putBack()
      // The feed is another one: nobody is left waiting for numbers that were given to others.
      await reader.end()
      const lost = await EventReader.open(api.url, key, { lastEventId: reader.lastEventId })
      expect([lost.status, lost.problem.code]).toEqual([410, 'events_gone'])

      const back = await EventReader.open(api.url, key, { lastEventId: before?.id })
      expect(back.status).toBe(200)
      const goOn = async (): Promise<number> => {
        const { status } = await call('POST', `${path}/credits`, { body: { amount: 9 }, key: 'anew' })
        if (status === 503) await api.backend.holdfast.reconcile().catch(() => {})
        return status
      }
      await expect.poll(goOn, { timeout: 20_000 }).toBe(200)
      await back.until((events) => events.length === 1)
      expect(back.events[0]?.data.entry).toMatchObject({ seq: 2, key: 'anew' })
      await back.cut()
      await api.close()
    } finally {
      await postgres.stop()
    }
  })
})
