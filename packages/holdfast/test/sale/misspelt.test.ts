import { Holdfast } from 'holdfast'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { refusal } from '../api/support/paths.js'

/** Left out in silence, a misspelt option sells without its limit, or one of an item where there are fifty. */

const NOW = Date.now()
const TERMS = { perUser: 1, startsAt: NOW, endsAt: NOW + 3_600_000, items: [{ id: 'a' }] }
const PLAN = { every: 3_600_000, perUser: 1, items: [{ id: 'a' }] }

let servers: { redis: string; postgres: string }
let hf: Holdfast
beforeAll(async () => {
  servers = { redis: await freshRedis(), postgres: await freshDatabase() }
  hf = await Holdfast.connect({ ...servers, audit: false })
})
afterAll(() => hf.close())

const sale = () => hf.sale('s')
const schedule = () => hf.saleSchedule('p')

it.each<[string, (more: never) => Promise<unknown>, object, string]>([
  ['open', (more) => sale().open({ ...TERMS, ...(more as object) }), { perUsr: 2 }, 'perUsr: did you mean perUser?'],
  ['an item', (more) => sale().open({ ...TERMS, items: [more] }), { id: 'a', quantiy: 5 }, 'did you mean quantity?'],
  [
    'an item',
    (more) => sale().open({ ...TERMS, items: [more] }),
    { id: 'a', n: 5 },
    'expected only id, quantity, got n',
  ],
  [
    'an item that is wanted',
    (one) => sale().checkout({ user: 'u', key: 'k', items: [one] }),
    { id: 'a', quantit: 2 },
    'did you mean quantity?',
  ],
  ['pay', (pay) => sale().purchase('c', { pay }), { wallet: 'w', price: 1, count: 1 }, 'did you mean counter?'],
  ['status', (more) => sale().status(more), { timeOut: 1 }, 'did you mean timeout?'],
  ['soldOut', (more) => sale().soldOut(more), { timeout: 1 }, 'timeout'],
  ['items', (more) => sale().items(more), { limits: 1 }, 'did you mean limit?'],
  ['attempts', (more) => sale().attempts(more), { usr: 'u' }, 'did you mean user?'],
  ['checkoutOf', (more) => sale().checkoutOf('u', more), { signl: null }, 'did you mean signal?'],
  ['the checkout of a code', (more) => hf.checkoutRef('c').get(more), { timout: 1 }, 'did you mean timeout?'],
  ['sales', (more) => hf.sales(more), { afer: 'a' }, 'did you mean after?'],
  ['a schedule', (more) => schedule().start({ ...PLAN, ...(more as object) }), { evry: 1 }, 'did you mean every?'],
  ['a schedule', (more) => schedule().start({ ...PLAN, ...(more as object) }), { startsAt: NOW }, 'startsAt'],
  ['its items', (items) => schedule().start({ ...PLAN, items }), { id: '{n}', cout: 5 }, 'did you mean count?'],
  ['its slots', (more) => schedule().slots(more), { befor: 1 }, 'did you mean before?'],
  ['its current sale', (more) => schedule().current(more), { timout: 1 }, 'did you mean timeout?'],
  ['schedules', (more) => hf.saleSchedules(more), { limt: 1 }, 'did you mean limit?'],
])('refuses a name that %s does not have', async (_what, call, wrong, told) => {
  const { code, message } = await refusal(call(wrong as never))
  expect(code).toBe('invalid_argument')
  expect(message).toMatch(/: expected only /)
  expect(message.endsWith(told)).toBe(true)
})

it.each([
  [{ earlyReject: { evry: 1_000 } }, 'evry: did you mean every?'],
  [{ saleAttempts: { retention: 1_000 } }, 'retention: did you mean retentionMs?'],
])('refuses a name that connect does not have: %j', async (wrong, told) => {
  const { message } = await refusal(Holdfast.connect({ ...servers, ...(wrong as object) }))
  expect(message.endsWith(told)).toBe(true)
})
