import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { Api, type Caller, openWallet } from '../support/api.js'

let api: Api
let call: Caller
beforeAll(async () => {
  api = await Api.start()
  call = api.as(await api.key())
})

const TTL = 900_000

describe('a hold', () => {
  it('is made, captured, extended and settled', async () => {
    const path = await openWallet(call, 1_000)
    const made = await call('POST', `${path}/holds`, {
      body: { amount: 400, ttl: TTL, metadata: { call: 1 } },
      key: 'h',
    })
    expect(made).toMatchObject({
      status: 200,
      body: {
        id: 'h',
        amount: 400,
        captured: 0,
        left: 400,
        receipt: { available: 600, reserved: 400, replayed: false },
      },
    })
    expect(Object.keys(made.body).sort()).toEqual(['amount', 'captured', 'expiresAt', 'id', 'left', 'receipt'])
    const captured = await call('POST', `${path}/holds/h/captures`, { body: { amount: 100 }, key: 'c' })
    expect(captured.body).toMatchObject({ hold: { id: 'h', captured: 100, left: 300 }, available: 600, reserved: 300 })
    const extended = await call('POST', `${path}/holds/h/extend`, { body: { amount: 50, ttl: 2 * TTL }, key: 'e' })
    expect(extended.body.hold).toMatchObject({ amount: 450, left: 350 })
    expect(extended.body.hold.expiresAt).toBeGreaterThan(made.body.expiresAt)
    const settled = await call('POST', `${path}/holds/h/settle`, { body: { total: 120 }, key: 's' })
    expect(settled.body).toMatchObject({ hold: { captured: 120, left: 0 }, available: 880, reserved: 0 })

    const hold = await call('GET', `${path}/holds/h`)
    expect(hold.body).toMatchObject({ id: 'h', status: 'settled', captured: 120, metadata: { call: 1 }, seq: 2 })
    const told = await call('GET', `${path}/holds/h/explain`)
    expect(told.body).toMatchObject({
      currency: 'usd',
      more: false,
      money: { reserved: 450, charged: 120, returned: 330 },
    })
    expect(told.body.steps.map((step: { entry: { kind: string } }) => step.entry.kind)).toEqual([
      'hold',
      'capture',
      'extend',
      'settle',
    ])
    expect(told.body.text).toContain('Hold h of wallet')
    expect((await call('GET', `${path}/holds/h/explain?limit=1`)).body).toMatchObject({ more: true })
  })

  it('is released', async () => {
    const path = await openWallet(call, 100)
    await call('POST', `${path}/holds`, { body: { amount: 100, ttl: TTL }, key: 'h' })
    expect((await call('POST', `${path}/holds/h/release`, { key: 'r' })).body).toMatchObject({
      available: 100,
      reserved: 0,
    })
    expect(await call('POST', `${path}/holds/h/captures`, { body: { amount: 1 }, key: 'c' })).toMatchObject({
      status: 409,
      body: { code: 'hold_closed' },
    })
  })

  it('is refused with the facts', async () => {
    const path = await openWallet(call, 100)
    expect((await call('POST', `${path}/holds`, { body: { amount: 101, ttl: TTL }, key: 'h' })).body).toMatchObject({
      code: 'insufficient_funds',
      available: 100,
    })
    await call('POST', `${path}/holds`, { body: { amount: 60, ttl: TTL }, key: 'h' })
    expect((await call('POST', `${path}/holds/h/captures`, { body: { amount: 61 }, key: 'c' })).body).toMatchObject({
      code: 'hold_exceeded',
      left: 60,
    })
    const beyond = await call('POST', `${path}/holds/h/captures`, {
      body: { amount: 61, beyond: 'available' },
      key: 'c',
    })
    expect(beyond.body).toMatchObject({ available: 39, hold: { captured: 61, left: 0 } })
    for (const [below, body] of [
      ['captures', { amount: 1 }],
      ['extend', { ttl: 1 }],
      ['settle', { total: 1 }],
      ['release', undefined],
    ] as const) {
      expect(await call('POST', `${path}/holds/none/${below}`, { body, key: below })).toMatchObject({
        status: 404,
        body: { code: 'hold_not_found' },
      })
    }
    expect((await call('GET', `${path}/holds/none`)).body.code).toBe('hold_not_found')
    expect((await call('GET', `${path}/holds/none/explain`)).body.code).toBe('hold_not_found')
  })

  it('expires', async () => {
    const path = await openWallet(call, 100)
    await call('POST', `${path}/holds`, { body: { amount: 60, ttl: 30 }, key: 'h' })
    await sleep(60)
    expect(await call('POST', `${path}/holds/h/settle`, { body: { total: 60 }, key: 's' })).toMatchObject({
      status: 410,
      body: { code: 'hold_expired' },
    })
    expect((await call('GET', path)).body).toMatchObject({ available: 100, reserved: 0 })
  })

  it('is in the list while it is open', async () => {
    const path = await openWallet(call, 100)
    for (const key of ['a', 'b', 'c']) await call('POST', `${path}/holds`, { body: { amount: 10, ttl: TTL }, key })
    const first = await call('GET', `${path}/holds?limit=2`)
    expect(first.body.data).toMatchObject([
      { id: 'a', status: 'open', left: 10 },
      { id: 'b', status: 'open' },
    ])
    const rest = await call('GET', `${path}/holds?limit=2&after=${first.body.next}`)
    expect(rest.body).toMatchObject({ data: [{ id: 'c' }], next: null })
    await call('POST', `${path}/holds/b/release`, { key: 'r' })
    const ids = (await call('GET', `${path}/holds`)).body.data.map(({ id }: { id: string }) => id)
    expect(ids).toEqual(['a', 'c'])
  })

  it('has the key as its id, whatever stands in it', async () => {
    const path = await openWallet(call, 100)
    const key = 'call/17 "x" %41?#'
    await call('POST', `${path}/holds`, { body: { amount: 10, ttl: TTL }, key })
    const released = await call('POST', `${path}/holds/${encodeURIComponent(key)}/release`, { key: 'r' })
    expect(released.body.hold.id).toBe(key)
  })
})

describe('a session', () => {
  it('by units is begun, ticked by totals and ended', async () => {
    const path = await openWallet(call, 1_000)
    const begun = await call('POST', `${path}/sessions`, { body: { by: 'units', rate: 3, reserve: 100 }, key: 's' })
    expect(begun).toMatchObject({
      status: 200,
      body: {
        id: 's',
        by: 'units',
        charged: 0,
        left: 300,
        unitsLeft: 100,
        runsOutAt: null,
        ended: false,
        endedBy: null,
      },
    })
    expect(begun.body.receipt).toMatchObject({ available: 700, reserved: 300 })
    expect((await call('POST', `${path}/sessions/s/tick`, { body: { total: 10 } })).body.charged).toBe(30)
    expect((await call('POST', `${path}/sessions/s/tick`, { body: { total: 10 } })).body.charged).toBe(30)
    expect((await call('GET', `${path}/sessions/s`)).body).toMatchObject({ charged: 30, ended: false })
    const end = await call('POST', `${path}/sessions/s/end`, { body: { total: 20 } })
    expect(end.body).toMatchObject({ charged: 60, ended: true, endedBy: 'end', receipt: { available: 940 } })
    expect((await call('POST', `${path}/sessions/s/end`, { body: { total: 20 } })).body).toMatchObject({
      charged: 60,
      receipt: { replayed: true },
    })
  })

  it('by time is begun, ticked and ended without totals, and without bodies', async () => {
    const path = await openWallet(call, 1_000)
    const terms = {
      by: 'time',
      rate: 20,
      per: 60_000,
      reserve: 600_000,
      rounding: 'started',
      minimum: 1,
      heartbeat: 60_000,
    }
    const begun = await call('POST', `${path}/sessions`, { body: { ...terms, extendAt: 0.5 }, key: 's' })
    expect(begun.body).toMatchObject({ by: 'time', left: 200, unitsLeft: null, runsOutAt: expect.any(Number) })
    expect((await call('POST', `${path}/sessions/s/tick`)).body).toMatchObject({ charged: 20 })
    expect((await call('POST', `${path}/sessions/s/end`)).body).toMatchObject({ charged: 20, ended: true })
  })

  it('is refused clearly', async () => {
    const path = await openWallet(call, 1)
    const units = { by: 'units', rate: 3, reserve: 100 }
    const refusals: [unknown, string][] = [
      [units, 'insufficient_funds'],
      [{ ...units, per: 1 }, 'invalid_argument'],
      [{ ...units, by: 'weight' }, 'invalid_argument'],
      [{ rate: 3, reserve: 100 }, 'invalid_argument'],
      [{ by: 'time', rate: 3, reserve: 100 }, 'invalid_argument'],
      [{ ...units, rate: 0 }, 'invalid_amount'],
      [{ ...units, extendAt: 0.123 }, 'invalid_argument'],
    ]
    for (const [body, code] of refusals) {
      expect([body, (await call('POST', `${path}/sessions`, { body, key: 's' })).body.code]).toEqual([body, code])
    }
    expect((await call('POST', `${path}/sessions`, { body: units })).body.code).toBe('key_required')
    for (const [method, below] of [
      ['GET', ''],
      ['POST', '/tick'],
      ['POST', '/end'],
    ] as const) {
      expect((await call(method, `${path}/sessions/none${below}`)).body.code).toBe('session_not_found')
    }
  })
})
