import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { main } from '../src/commands/main.js'
import { Api, type Caller } from './support/api.js'
import { holdfast } from './support/holdfast.js'

let api: Api
let call: Caller
let environment: { HOLDFAST_URL: string; HOLDFAST_KEY: string }
const folder = mkdtempSync(join(tmpdir(), 'holdfast-sale-'))
beforeAll(async () => {
  api = await Api.start()
  const key = await api.key()
  call = api.as(key)
  environment = { HOLDFAST_URL: api.url, HOLDFAST_KEY: key }
})
afterAll(() => rmSync(folder, { recursive: true }))

/** The command line as `cli.ts` runs it, in this process: a process each would be most of the time. */
async function sale(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  let stdout = ''
  let stderr = ''
  const say = (text: string): void => {
    stderr += `${text}\n`
  }
  const print = (text: string): void => {
    stdout += `${text}\n`
  }
  const code = await main(['sale', ...args], { print, complain: say, progress: say, environment })
  return { code, stdout, stderr }
}

async function done(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await sale(...args)
  expect([code, stderr]).toEqual([0, ''])
  return stdout
}

const TERMS = ['--per-user', '10', '--starts', '2026-01-01T00:00:00Z', '--ends', '+1h']

describe('holdfast sale', () => {
  it('opens, checks out, buys, cancels, closes, and tells how it stands', async () => {
    expect(await done('open', 'friday', '--items', 'poster=5,a=b=2,guitar', ...TERMS, '--checkout-ttl', '10m')).toMatch(
      /^friday +running +8 +0 +0 +10 +2026-01-01 00:00:00 /m,
    )
    const out = await done('checkout', 'friday', '--user', 'ann', '--items', 'guitar,poster=2', '--key', 'k1')
    const [, code = ''] = /^code {5}(c[\w-]{43})$/m.exec(out) ?? []
    expect(out).toMatch(/^poster +2$/m)
    expect(await done('running', 'friday', '--user', 'ann')).toContain(code)
    expect(await done('items', 'friday', '--limit', '2')).toMatch(
      /^1 +poster +5 +3\n2 +a=b +2 +2\n\nThere are more: --after '2'$/m,
    )
    expect(await done('code', code)).toContain('status   open')
    expect(await done('purchase', code)).toMatch(/^status {3}purchased\n\nITEM +QUANTITY\nguitar +1$/m)
    expect(await done('purchase', code, '--take', 'left')).toContain('That was done before')
    const json = JSON.parse(await done('checkout', 'friday', '--user', 'bob', '--items', '[{"id":"poster"}]', '--json'))
    expect(json).toMatchObject({ items: [{ id: 'poster', quantity: 1 }], replayed: false })
    expect(await done('cancel', json.code)).toBe('Cancelled: what was in it can be bought by others.\n')
    expect(await done('list', '--limit', '1')).toMatch(/^friday +running +5 +0 +3 /m)
    expect(await done('close', 'friday')).toMatch(/^friday +closed +5 /m)
    expect(JSON.parse(await done('status', 'friday', '--json'))).toMatchObject({ sold: 3, open: false })
  })

  it('reads items from a file, a line each or as JSON', async () => {
    const lines = join(folder, 'lines')
    writeFileSync(lines, Array.from({ length: 3_000 }, (_, n) => `item ${n}${n % 2 ? '=2' : ''}\n`).join(''))
    expect(await done('open', 'lines', '--items-file', lines, ...TERMS)).toMatch(/^lines +running +4,500 /m)
    writeFileSync(lines, '[{"id":"a","quantity":7}]')
    expect(await done('open', 'array', '--items-file', lines, ...TERMS)).toMatch(/^array +running +7 /m)
    writeFileSync(lines, 'a\n\nb\n')
    expect((await sale('open', 'x', '--items-file', lines, ...TERMS)).stderr).toContain('in line 2')
  })

  it.each([
    [['open', 'x', ...TERMS], 2, 'either --items or --items-file, got neither'],
    [['open', 'x', '--items', 'a=0', ...TERMS], 2, '--items: expected ids separated by commas'],
    [
      ['open', 'x', '--items', 'a', '--per-user', '1', '--starts', '18:00', '--ends', '+1h'],
      2,
      '--starts: expected now',
    ],
    [
      ['open', 'x', '--items', 'a', '--per-user', '1', '--starts', '+2h', '--ends', '+1h'],
      1,
      'invalid_argument: endsAt',
    ],
    [['status', 'none'], 1, 'sale_not_found'],
    [['purchase', 'none'], 1, 'checkout_not_found'],
    [['purchase', 'no code'], 2, 'expected the code that checkout gave, got something else'],
    [['checkout', 'x', '--items', 'a'], 2, '--user: expected'],
  ])('%j ends with %i and says why', async (args, code, message) => {
    const ended = await sale(...args)
    expect([ended.code, ended.stdout]).toEqual([code, ''])
    expect(ended.stderr).toContain(message)
  })

  it('tells a refusal to scripts as the server did', async () => {
    await done('open', 'one', '--items', 'a', ...TERMS)
    await done('checkout', 'one', '--user', 'ann', '--items', 'a')
    const refused = await sale('checkout', 'one', '--user', 'bob', '--items', 'a', '--json')
    expect([refused.code, JSON.parse(refused.stdout)]).toMatchObject([1, { code: 'sold_out', item: 'a', left: 0 }])
  })
})

describe('holdfast sale purchase --pay-with', () => {
  const fill = async (id: string): Promise<string> => {
    await done('open', id, '--items', 'poster=5,guitar', ...TERMS)
    const out = await done('checkout', id, '--user', 'ann', '--items', 'guitar,poster=2', '--json')
    return JSON.parse(out).code
  }

  it('takes the price out of a wallet, one for all or one for each', async () => {
    await call('PUT', '/v1/wallets/ann', { body: { currency: 'usd' } })
    await call('POST', '/v1/wallets/ann/credits', { body: { amount: 1_000 }, key: 'c' })
    const price = ['--price', 'poster=100,guitar=500', '--counter', 'shop', '--metadata', '{"order":7}']
    const paid = await done('purchase', await fill('pays'), '--pay-with', 'ann', ...price)
    expect(paid).toMatch(/^paid {5}700 out of ann, hold ~purchase-hold:[0-9a-f]+$/m)
    const { data } = (await call('GET', '/v1/wallets/ann/entries')).body
    expect(data.at(-1)).toMatchObject({ kind: 'settle', amount: 700, counter: 'shop', metadata: { order: 7 } })
    const json = await done('purchase', await fill('pays-2'), '--pay-with', 'ann', '--price', '100', '--json')
    expect(JSON.parse(json)).toMatchObject({ paid: { wallet: 'ann', amount: 300 } })
    const short = await sale(
      'purchase',
      await fill('pays-3'),
      '--pay-with',
      'ann',
      '--price',
      '{"poster":1,"guitar":0}',
    )
    expect([short.code, short.stderr]).toEqual([1, expect.stringContaining('insufficient_funds')])
  })

  it.each([
    [['--pay-with', 'ann'], '--price: expected a whole number from 0 on'],
    [['--price', '5'], '--pay-with: expected'],
    [['--pay-with', 'ann', '--price', 'poster'], '--price: expected a whole number from 0 on'],
    [['--pay-with', 'ann', '--price', 'a=1,b=x'], '--price: expected'],
    [['--counter', 'shop'], 'expected --pay-with beside them'],
  ])('%j is not tried', async (args, message) => {
    const ended = await sale('purchase', 'code', ...args)
    expect([ended.code, ended.stderr]).toEqual([2, expect.stringContaining(message)])
  })
})

describe('holdfast sale attempts', () => {
  it('shows what was tried, of all or of one', async () => {
    await done('open', 'tried', '--items', 'a,b=9', ...TERMS)
    await done('checkout', 'tried', '--user', 'ann', '--items', 'a,b=2')
    await sale('checkout', 'tried', '--user', 'bob', '--items', 'a')
    const all = await done('attempts', 'tried')
    expect(all).toMatch(/ checkout +accepted +[0-9a-f]{32} +a,b=2\n.+ checkout +refused +sold_out +a$/m)
    expect(await done('attempts', 'tried', '--user', 'bob')).not.toContain('accepted')
    expect(await done('attempts', 'tried', '--user', 'eve')).toBe('There are no such attempts.\n')
    const [, after = ''] = /--after '(.+)'/.exec(await done('attempts', 'tried', '--limit', '1')) ?? []
    const rest = JSON.parse(await done('attempts', 'tried', '--after', after, '--json'))
    expect(rest).toMatchObject({ data: [{ outcome: 'refused', code: 'sold_out' }], next: null })
    expect((await sale('attempts', 'none')).stderr).toContain('sale_not_found')
    expect((await sale('attempts', 'tried', '--after', '5')).code).toBe(2)
  })
})

describe('holdfast sale repeat', () => {
  it('puts a schedule on record, and shows what comes of it', async () => {
    const terms = ['--every', '1d', '--offset', '90m', '--ahead', '1d', '--per-user', '2', '--checkout-ttl', '5m']
    const made = await done(
      'repeat',
      'daily',
      '--item-template',
      '{sale}-{n}',
      '--count',
      '30',
      '--quantity',
      '2',
      ...terms,
    )
    expect(made).toMatch(/^daily +running +1d +30 +2 +\d{4}-\d\d-\d\d 01:30:00 +1$/m)
    const current = await done('current', 'daily')
    expect(current).toMatch(/^daily-\d{8}0130 +running +60 +0 +0 +2 /m)
    const next = JSON.parse(await done('next', 'daily', '--json'))
    expect(next).toMatchObject({ stock: 60, checkoutTtlMs: 300_000 })
    expect(await done('items', next.id, '--limit', '1')).toContain(`${next.id}-1`)
    expect(await done('slots', 'daily', '--limit', '1')).toMatch(
      new RegExp(`^${next.id} .+ yes\n\nThere are more: --after '${next.startsAt}'$`, 'm'),
    )
    expect(await done('slots', 'daily', '--after', `${next.startsAt}`)).not.toContain(next.id)
    expect(await done('pause', 'daily')).toMatch(/^daily +paused /m)
    expect(await done('schedule', 'daily')).toMatch(/^daily +paused /m)
    expect(await done('resume', 'daily')).toMatch(/^daily +running /m)
    const file = join(folder, 'weekly')
    writeFileSync(file, 'a=5\nb\n')
    await done('repeat', 'weekly', '--items-file', file, '--every', '7d', '--per-user', '1')
    expect(await done('schedules', '--limit', '1')).toMatch(/^daily .+\n\nThere are more: --after 'daily'$/m)
    const { data } = JSON.parse(await done('schedules', '--after', 'daily', '--json'))
    expect(data).toMatchObject([{ id: 'weekly', items: 2 }])
  })

  it.each([
    [
      ['repeat', 'x', '--every', '1h', '--per-user', '1'],
      2,
      'one of --items, --items-file and --item-template, got none',
    ],
    [
      ['repeat', 'x', '--every', '1h', '--per-user', '1', '--items', 'a', '--item-template', '{n}', '--count', '1'],
      2,
      'got several',
    ],
    [['repeat', 'x', '--every', '1h', '--per-user', '1', '--item-template', '{n}'], 2, '--count: expected'],
    [['repeat', 'x', '--every', '1', '--per-user', '1', '--items', 'a'], 2, '--every: expected'],
    [['repeat', 'x', '--every', '999ms', '--per-user', '1', '--items', 'a'], 1, 'invalid_argument: body.every'],
    [['current', 'none'], 1, 'schedule_not_found'],
    [['pause', 'none'], 1, 'schedule_not_found'],
  ])('%j ends with %i and says why', async (args, code, message) => {
    const ended = await sale(...args)
    expect([ended.code, ended.stdout]).toEqual([code, ''])
    expect(ended.stderr).toContain(message)
  })
})

describe('holdfast sale watch', () => {
  /** Buys so many, one after the other. */
  async function buy(id: string, count: number): Promise<void> {
    for (let n = 0; n < count; n += 1) {
      const body = { user: `u${n}`, items: [{ id: 'a' }] }
      const { code } = (await call('POST', `/v1/sales/${id}/checkouts`, { body, key: `k${n}` })).body
      await call('POST', `/v1/checkouts/${code}/purchase`)
    }
  }

  it('draws in place on a terminal, and ends when all is sold', async () => {
    await done('open', 'drawn', '--items', 'a=5', ...TERMS)
    const written: string[] = []
    const screen = { columns: () => 60, write: (text: string) => void written.push(text) }
    const terminal = { print: vi.fn(), complain: vi.fn(), progress: vi.fn(), environment, screen }
    const watching = main(['sale', 'watch', 'drawn'], terminal)
    await vi.waitFor(() => expect(written.length).toBeGreaterThan(1), 20_000)
    await buy('drawn', 5)
    expect(await watching).toBe(0)
    expect(terminal.print).not.toHaveBeenCalled()
    const [first = '', second = ''] = written
    const lines = first.split('\n').length - 1
    expect(first.startsWith('\r\u001b[2Kdrawn   running   ends in ')).toBe(true)
    expect(second.startsWith(`\u001b[${lines}A\r\u001b[2Kdrawn`)).toBe(true)
    expect(written.at(-1)).toContain('sold out')
    expect(written.at(-1)).toContain('100 % sold')
  })

  it('prints lines where nobody looks, only of what has changed, and stops at Ctrl-C', async () => {
    await done('open', 'piped', '--items', 'a=50', ...TERMS)
    const [lines, json] = await Promise.all([
      holdfast(['sale', 'watch', 'piped'], { env: environment }),
      holdfast(['sale', 'watch', 'piped', '--json'], { env: environment }),
    ])
    for (const one of [lines, json]) await vi.waitFor(() => expect(one.stdout).toContain('\n'), 60_000)
    await buy('piped', 3)
    for (const [one, last] of [
      [lines, /sold 3 .* left 47 /],
      [json, /"stock":47,"reserved":0,"sold":3,/],
    ] as const) {
      await vi.waitFor(() => expect(one.stdout.trim().split('\n').at(-1)).toMatch(last), 60_000)
      const told = one.stdout.trim().split('\n')
      expect(new Set(told).size).toBe(told.length)
      expect(one.stdout).not.toContain('\u001b')
      one.signal('SIGINT')
      expect(await one.ended).toMatchObject({ code: 0, stderr: '' })
    }
  })
})
