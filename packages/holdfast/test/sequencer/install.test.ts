import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freshRedis } from '../../../../test/servers.js'
import { command, type Entry, EXPIRE_MAX, type HoldState, REMEMBERED } from '../../src/machine/index.js'
import { Keys, type Place } from '../../src/redis/index.js'
import { kept, Writer } from '../journal/journals.js'
import { emptyState } from '../machine/oracle.js'
import { AcquaintedSequencer } from './support/acquainted.js'
import { runnerOn } from './support/runner.js'

const keys = new Keys({ tenant: 'test', secret: Buffer.alloc(32, 7), shards: 1 })
const HOLDS = 3 * EXPIRE_MAX

let redis: Redis
let sequencer: AcquaintedSequencer

beforeAll(async () => {
  redis = new Redis(await freshRedis())
  const options = {
    aheadMaxMs: 60_000,
    helpAfterMs: 1_000,
    idleAfterMs: 60_000,
    pendingMax: 100,
    now: () => Date.now(),
  }
  sequencer = new AcquaintedSequencer(runnerOn(redis), options)
})
afterAll(() => redis.disconnect())

it('loses nothing that was acknowledged from memory where more is due than one step lets expire', async () => {
  const place = keys.place(keys.ref('crowded'))
  const now = Date.now()
  const holds = new Map<string, HoldState>()
  for (let n = 0; n < HOLDS; n += 1) {
    holds.set(`h${n}`, { amount: 1, captured: 0, left: 1, expiresAt: now + 20_000, refunded: 0 })
  }
  const state = { ...emptyState('0'.repeat(40)), seq: HOLDS, reserved: HOLDS, holds, due: now + 20_000, since: 1 }
  const installation = { place, memory: true, deadline: now + 60_000, finalKeys: [] }
  await sequencer.install('test', { ...installation, state, clock: now })
  const credit = command({ kind: 'credit', key: 'in', amount: 5 })
  const { answers } = await sequencer.decide({
    wallets: [{ place, epochMin: 0, epoch: 0, acked: 0, known: 0 }],
    commands: [{ wallet: 0, command: credit, deadline: now + 60_000, memory: true }],
  })
  expect(answers).toEqual([{ type: 'accepted', seq: HOLDS + 1 }])

  // Loaded anew, with a journal that went on until all of them were due: what the credit is decided on is not the state of before.
  const later = { ...state, epoch: state.epoch + 1, at: now + 30_000 }
  const reply = await sequencer.install('test', { ...installation, state: later, clock: now + 30_000 })
  expect(reply).toEqual({ type: 'installed', lost: [] })
  const { core, pending } = await sequencer.look(place, 0, 'test', 0)
  expect(core).toMatchObject({ available: HOLDS + 5, reserved: 0, open: 0 })
  expect(pending).toHaveLength(HOLDS + 1)
  expect(pending.at(-1)).toMatchObject({ memory: true, entry: { kind: 'credit', key: 'in' } })
})

it('installs nothing over a newer life, and what that acknowledged from memory stays', async () => {
  const place = keys.place(keys.ref('overtaken'))
  const now = Date.now()
  const state = { ...emptyState('0'.repeat(40)), epoch: 5 }
  const installation = { place, memory: true, deadline: now + 60_000, clock: now, finalKeys: [] }
  await sequencer.install('test', { ...installation, state })
  await sequencer.decide({
    wallets: [{ place, epochMin: 0, epoch: 0, acked: 0, known: 0 }],
    commands: [
      { wallet: 0, command: command({ kind: 'credit', key: 'in', amount: 5 }), deadline: now + 60_000, memory: true },
    ],
  })
  const before = await redis.hgetallBuffer(place.walletKey)
  for (const epoch of [4, 5]) {
    const reply = await sequencer.install('late', { ...installation, state: { ...state, epoch } })
    expect(reply.type).not.toBe('installed')
    expect(await redis.hgetallBuffer(place.walletKey)).toEqual(before)
  }
})

it('decides what was acknowledged from memory at the time it was acknowledged', async () => {
  const place = keys.place(keys.ref('timely'))
  const now = Date.now()
  const expiresAt = now + 60_000
  const holds = new Map([['h', { amount: 10, captured: 0, left: 10, expiresAt, refunded: 0 }]])
  const state = { ...emptyState('0'.repeat(40)), seq: 1, at: now, reserved: 10, holds, due: expiresAt, since: 1 }
  const installation = { place, memory: true, deadline: now + 60_000, finalKeys: [] }
  await sequencer.install('test', { ...installation, state, clock: now })
  const capture = command({ kind: 'capture', key: 'c', hold: 'h', amount: 4 })
  const { answers } = await sequencer.decide({
    wallets: [{ place, epochMin: 0, epoch: 0, acked: 0, known: 0 }],
    commands: [{ wallet: 0, command: capture, deadline: now + 60_000, memory: true }],
  })
  expect(answers).toEqual([{ type: 'accepted', seq: 2 }])

  // Loaded anew when the hold has run out.
  const later = { ...state, epoch: state.epoch + 1 }
  const reply = await sequencer.install('test', { ...installation, state: later, clock: expiresAt + 1 })
  expect(reply).toEqual({ type: 'installed', lost: [] })
  const { pending } = await sequencer.look(place, 0, 'test', 0)
  expect(pending).toMatchObject([{ memory: true, entry: { kind: 'capture', key: 'c', holdLeft: 6 } }])
  // And then time goes on from where it was.
  const touched = await sequencer.decide({
    wallets: [{ place, epochMin: 0, epoch: 0, acked: 0, known: 0 }],
    commands: [{ wallet: 0, command: command({ kind: 'touch' }), deadline: expiresAt + 60_000, memory: false }],
  })
  expect(touched.runs).toMatchObject([
    { entries: [{ kind: 'capture' }, { kind: 'expire', at: expiresAt + 1, amount: 6 }] },
  ])
})

it('decides a session again that was acknowledged from memory: its beginning, its ticks and its end', async () => {
  const place = keys.place(keys.ref('metered'))
  const now = Date.now()
  const state = { ...emptyState('0'.repeat(40)), available: 1_000 }
  const installation = { place, memory: true, deadline: now + 60_000, finalKeys: [] }
  await sequencer.install('test', { ...installation, state, clock: now })
  const terms = {
    counting: 'units' as const,
    rate: 3,
    perMs: 0,
    stretch: 300,
    extendAtPercent: 80,
    heartbeatMs: 60_000,
  }
  const hold = 'chat'
  const commands = [
    command({ kind: 'meter', key: hold, meter: { ...terms, measure: 3 } }),
    command({ kind: 'tick', key: '~tick:chat:1', hold, meter: { ...terms, measure: 81 } }),
    command({ kind: 'end', key: '~end:chat', hold, meter: { ...terms, measure: 90 } }),
  ]
  await sequencer.decide({
    wallets: [{ place, epochMin: 0, epoch: 0, acked: 0, known: 0 }],
    commands: commands.map((one) => ({ wallet: 0, command: one, deadline: now + 60_000, memory: true })),
  })
  const before = await sequencer.look(place, 0, 'test', 0)
  expect(before.core).toMatchObject({ available: 730, reserved: 0, open: 0 })

  // Less money than before: it is decided on what there is now, as far as that goes.
  const poorer = { ...state, epoch: state.epoch + 1, available: 400 }
  const reply = await sequencer.install('test', { ...installation, state: poorer, clock: now })
  expect(reply).toEqual({ type: 'installed', lost: [] })
  const { core, pending } = await sequencer.look(place, 0, 'test', 0)
  expect(core).toMatchObject({ available: 130, reserved: 0, open: 0 })
  expect(pending.map(({ entry }) => [entry.kind, entry.holdAmount, entry.holdCaptured])).toEqual([
    ['hold', 300, 0],
    ['tick', 400, 243],
    ['settle', 400, 270],
  ])
  expect(pending.map(({ entry }) => entry.params)).toEqual(before.pending.map(({ entry }) => entry.params))
})

it('decides nothing again that the journal ends with, whoever appended it', async () => {
  const place = keys.place(keys.ref('appended meanwhile'))
  const now = Date.now()
  const state = { ...emptyState('0'.repeat(40)), available: 100 }
  const installation = { place, memory: true, deadline: now + 60_000, finalKeys: [] }
  await sequencer.install('test', { ...installation, state, clock: now })
  const holds = ['first', 'second', 'third'].map((key) => command({ kind: 'hold', key, amount: 10, ttlMs: 60_000 }))
  await sequencer.decide({
    wallets: [{ place, epochMin: 0, epoch: 0, acked: 0, known: 0 }],
    commands: holds.map((hold) => ({ wallet: 0, command: hold, deadline: now + 60_000, memory: true })),
  })
  const decided = await sequencer.look(place, 0, 'test', 0)
  const [first, second] = decided.pending.map(({ entry }) => entry)

  // The journal got two of them after whoever loads the wallet anew had looked.
  const { at, hash: head, available, reserved } = second as Entry
  const open = new Map(
    [first, second].map((entry) => {
      const { key, holdExpiresAt } = entry as Entry
      return [key, { amount: 10, captured: 0, left: 10, expiresAt: holdExpiresAt as number, refunded: 0 }]
    }),
  )
  const since = { seq: 2, head, at, available, reserved, holds: open, due: at + 60_000, since: 1 }
  const reply = await sequencer.install('test', {
    ...installation,
    state: { ...state, ...since, epoch: state.epoch + 1 },
    clock: now,
  })
  expect(reply).toEqual({ type: 'installed', lost: [] })
  const { core, pending } = await sequencer.look(place, 0, 'test', 0)
  expect(core).toMatchObject({ seq: 3, available: 70, reserved: 30, open: 3 })
  expect(pending).toMatchObject([{ memory: true, entry: { kind: 'hold', key: 'third' } }])
})

/** What a journal has, and the state that it ends with. */
function journalOf(place: Place, count: number) {
  const writer = new Writer(place.ref, emptyState('0'.repeat(40)))
  const entries = Array.from({ length: count }, (_, n) => writer.credit(`c${n}`, 1))
  return { entries: entries.map(kept), state: writer.state }
}

async function credit(place: Place, names: readonly string[]) {
  const { answers } = await sequencer.decide({
    wallets: [{ place, epochMin: 0, epoch: 0, acked: 0, known: 0 }],
    commands: names.map((key) => ({
      wallet: 0,
      command: command({ kind: 'credit', key, amount: 1 }),
      deadline: Date.now() + 60_000,
      memory: true,
    })),
  })
  return answers
}

it('remembers the last results of the journal', async () => {
  const place = keys.place(keys.ref('remembers'))
  const { entries, state } = journalOf(place, 20)
  const recent = entries.slice(-REMEMBERED)
  const installation = { place, memory: true, deadline: Date.now() + 60_000, clock: Date.now(), finalKeys: [] }
  await sequencer.install('test', { ...installation, state, recent })
  expect(await credit(place, ['c4', 'c19', 'new', 'c10'])).toEqual([
    { type: 'replay', memory: false, entry: entries[4] },
    { type: 'replay', memory: false, entry: entries[19] },
    { type: 'accepted', seq: 21 },
    { type: 'replay', memory: false, entry: entries[10] },
  ])
  // As ever: what comes pushes out what is oldest.
  expect(await credit(place, ['c4', 'c6'])).toMatchObject([{ type: 'accepted', seq: 22 }, { type: 'replay' }])
})

it.each([3, 20, 40])('remembers them beside %i that are decided again', async (count) => {
  const place = keys.place(keys.ref(`beside ${count}`))
  const installation = { place, memory: true, deadline: Date.now() + 60_000, clock: Date.now(), finalKeys: [] }
  await sequencer.install('test', { ...installation, state: emptyState('0'.repeat(40)) })
  const again = Array.from({ length: count }, (_, n) => `again${n}`)
  await credit(place, again)
  const { entries, state } = journalOf(place, 20)
  const recent = entries.slice(-REMEMBERED)
  const later = { ...state, epoch: state.epoch + 1 }
  expect(await sequencer.install('test', { ...installation, state: later, recent })).toMatchObject({ lost: [] })
  const { pending } = await sequencer.look(place, 0, 'test', 0)
  expect(pending.map(({ entry }) => entry.key)).toEqual(again)
  const last = [...entries.map(({ key }) => key), ...again].slice(-REMEMBERED)
  expect((await credit(place, last)).map(({ type }) => type)).toEqual(last.map(() => 'replay'))
  const older = entries.map(({ key }) => key).filter((key) => !last.includes(key))
  const types = (await credit(place, older)).map(({ type }) => type)
  // Where there is more room, some more may be remembered; none that was not brought along.
  expect(types.slice(0, 4)).toEqual(new Array(4).fill('accepted'))
  expect(types.filter((type) => type !== 'accepted' && type !== 'replay')).toEqual([])
})

it('keeps a wallet that was last used long ago for as long as one that is used now', async () => {
  const place = keys.place(keys.ref('dormant'))
  const now = Date.now()
  const state = { ...emptyState('0'.repeat(40)), seq: 1, at: now - 86_400_000, available: 100 }
  await sequencer.install('test', {
    place,
    memory: false,
    deadline: now + 60_000,
    finalKeys: [],
    state,
    clock: now,
  })
  expect(Number(await redis.zscore(place.agendaKey, place.agendaName))).toBe(now + 60_000)
})

it('keeps a hold that runs out and comes back in one call', async () => {
  const place = keys.place(keys.ref('again'))
  const now = Date.now()
  const holds = new Map([['h', { amount: 10, captured: 0, left: 10, expiresAt: now - 1, refunded: 0 }]])
  const state = { ...emptyState('0'.repeat(40)), seq: 1, reserved: 10, holds, due: now - 1, since: 1 }
  const deadline = now + 60_000
  await sequencer.install('test', { place, state, memory: false, deadline, clock: now, finalKeys: [] })
  // The journal knows the key, and will say so; until then Redis must not contradict itself.
  const { answers } = await sequencer.decide({
    wallets: [{ place, epochMin: 0, epoch: 0, acked: 0, known: 0 }],
    commands: [
      command({ kind: 'touch' }),
      command({ kind: 'hold', key: 'h', hold: 'h', amount: 10, ttlMs: 60_000 }),
    ].map((one) => ({ wallet: 0, command: one, deadline, memory: false })),
  })
  expect(answers.at(-1)).toEqual({ type: 'accepted', seq: 3 })
  const [hot] = await sequencer.inspect([place])
  expect(hot?.core).toMatchObject({ available: 0, reserved: 10, open: 1 })
  expect([...(hot?.holds.keys() ?? [])]).toEqual(['h'])
})
