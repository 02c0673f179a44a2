import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ErrorCode, Holdfast, Wallet } from '../../src/index.js'
import { Dump } from './support/dump.js'
import { onBothPaths, refusal } from './support/paths.js'

const MAX = Number.MAX_SAFE_INTEGER
const TTL_MAX = 400 * 24 * 60 * 60 * 1_000
/** Stands in everything that must not be repeated in a message. */
const PERSONAL = 'jane@example.org'

const NOT_INTEGERS: [string, unknown][] = [
  ['negative', -1],
  ['fractional', 1.5],
  ['tiny', Number.MIN_VALUE],
  ['NaN', Number.NaN],
  ['Infinity', Number.POSITIVE_INFINITY],
  ['-Infinity', Number.NEGATIVE_INFINITY],
  ['2^53', MAX + 1],
  ['1e300', 1e300],
  ['a string', '5'],
  ['text', PERSONAL],
  ['a bigint', 5n],
  ['null', null],
  ['nothing', undefined],
  ['a boolean', true],
  ['an object', { valueOf: () => 5 }],
  ['an array', [5]],
]
const NOT_POSITIVE: [string, unknown][] = [...NOT_INTEGERS, ['zero', 0], ['minus zero', -0]]

const GIVEN_NOT_POSITIVE = NOT_POSITIVE.filter(([, value]) => value !== undefined)

const NO_CHUNKS = (async function* () {})()

const NOT_TEXT: [string, unknown][] = [
  ['empty', ''],
  ['too long', 'x'.repeat(256)],
  ['too long in characters of four bytes', '🙂'.repeat(256)],
  ['a line break', `${PERSONAL}\n`],
  ['a NUL', `${PERSONAL}\0`],
  ['DEL', `${PERSONAL}\x7f`],
  ['NEL', `${PERSONAL}\x85`],
  ['half a surrogate pair', `${PERSONAL}\ud83d`],
  ['the other half', `\ude42${PERSONAL}`],
  ['a number', 5],
  ['a bigint', 5n],
  ['a symbol', Symbol(PERSONAL)],
  ['an object', { toString: () => 'key' }],
]

const circular: Record<string, unknown> = { [PERSONAL]: 1 }
circular[PERSONAL] = circular

/** What messages call by more than one argument, and the one that the error names. */
const OF_SEVERAL: Record<string, string> = { 'amount and fee': 'fee', 'rate times per': 'rate' }

/** Any value where a caller without types may put it. */
type Call = (wallet: Wallet, bad: never, hf: Holdfast) => Promise<unknown>
type Case = [operation: string, code: ErrorCode, calls: Call, values: [string, unknown][]]

const key = 'fresh'
const ttl = 60_000
const held = (wallet: Wallet) => wallet.holdRef('hold')
const metered = (wallet: Wallet) => wallet.sessionRef('session')
const time = { by: 'time', rate: 5, per: 1_000, reserve: 10_000, key } as const
const units = { by: 'units', rate: 5, reserve: 10, key } as const

/** Every operation, with good options around what is bad. */
const OPERATIONS: Record<string, (wallet: Wallet, options: object, hf: Holdfast) => Promise<unknown>> = {
  credit: (wallet, options) => wallet.credit(5, options as never),
  debit: (wallet, options) => wallet.debit(5, options as never),
  hold: (wallet, options) => wallet.hold(5, { ttl, ...options } as never),
  capture: (wallet, options) => held(wallet).capture(5, options as never),
  extend: (wallet, options) => held(wallet).extend({ amount: 5, ...options } as never),
  settle: (wallet, options) => held(wallet).settle(5, options as never),
  release: (wallet, options) => held(wallet).release(options as never),
  refund: (wallet, options) => wallet.refund(3, 1, options as never),
  freeze: (wallet, options) => wallet.freeze(options as never),
  unfreeze: (wallet, options) => wallet.unfreeze(options as never),
  setCreditLimit: (wallet, options) => wallet.setCreditLimit(5, options as never),
  close: (wallet, options) => wallet.close(options as never),
  note: (wallet, options) => wallet.note(options as never),
  meter: (wallet, options) => wallet.meter({ ...units, key: undefined, ...options } as never),
  transfer: (wallet, options, hf) => hf.transfer(wallet.id, 'other', 5, options as never),
}

/** The books have these of their own. */
const OWN_ACCOUNTS: [string, unknown][] = ['wallets', 'transfers'].map((account) => [`the account ${account}`, account])

const NOT_METADATA: [string, unknown][] = [
  ['a cycle', circular],
  ['a bigint', { [PERSONAL]: 1n }],
  ['a function', () => PERSONAL],
  ['a symbol', Symbol(PERSONAL)],
  ['one that throws', { toJSON: () => expect.fail(PERSONAL) }],
]

const TOO_MUCH_METADATA: [string, unknown][] = [
  ['4097 bytes', PERSONAL.padEnd(4_095)],
  ['bytes, not characters', 'é'.repeat(2_048)],
]

/** A transfer is not asked for with `retry`. */
const { transfer: _, ...RETRIED } = OPERATIONS

/** Those that make their key themselves. */
const KEYLESS: typeof OPERATIONS = {
  tick: (wallet, options) => metered(wallet).tick({ total: 1, ...options }),
  end: (wallet, options) => metered(wallet).end({ total: 1, ...options }),
}

type Read = (wallet: Wallet, options: object, hf: Holdfast) => Promise<unknown>

/** Good options around bad ones; what are no options at all stays as it is. */
function asOptions(given: object, good: object): never {
  const isOptions = typeof given === 'object' && given !== null && !Array.isArray(given)
  return (isOptions ? { ...good, ...given } : given) as never
}

/** What comes in pages, and the most that a page may have. */
const PAGES: Record<string, [read: Read, limitMax: number]> = {
  entries: [(wallet, options) => wallet.entries(options), 1_000],
  holds: [(wallet, options) => wallet.holds(options), 1_000],
  explain: [(wallet, options) => held(wallet).explain(options), 10_000],
}

/** What takes no key, and waits no longer than it is told. */
const READS: Record<string, Read> = {
  ...Object.fromEntries(Object.entries(PAGES).map(([name, [read]]) => [name, read])),
  open: (wallet, options) => wallet.open(asOptions(options, { currency: 'usd' })),
  get: (wallet, options) => wallet.get(options),
  entry: (wallet, options) => wallet.entry('debit', options),
  wallets: (_, options, hf) => hf.wallets(options),
  'hold get': (wallet, options) => held(wallet).get(options),
  exclusive: (wallet, options) => wallet.exclusive(() => 1, options),
}

const NOT_OPTIONS: [string, unknown][] = [
  ['null', null],
  ['text', PERSONAL],
  ['a number', 5],
  ['an array', [{ key }]],
]

const CASES: Case[] = [
  ['credit with options', 'invalid_argument', (wallet, bad) => wallet.credit(5, bad), NOT_OPTIONS],
  ['debit with options', 'invalid_argument', (wallet, bad) => wallet.debit(5, bad), NOT_OPTIONS],
  ['hold with options', 'invalid_argument', (wallet, bad) => wallet.hold(5, bad), NOT_OPTIONS],
  ['capture with options', 'invalid_argument', (wallet, bad) => held(wallet).capture(5, bad), NOT_OPTIONS],
  ['extend with options', 'invalid_argument', (wallet, bad) => held(wallet).extend(bad), NOT_OPTIONS],
  ['settle with options', 'invalid_argument', (wallet, bad) => held(wallet).settle(5, bad), NOT_OPTIONS],
  ['release with options', 'invalid_argument', (wallet, bad) => held(wallet).release(bad), NOT_OPTIONS],
  ['refund with options', 'invalid_argument', (wallet, bad) => wallet.refund(3, 1, bad), NOT_OPTIONS],
  ['close with options', 'invalid_argument', (wallet, bad) => wallet.close(bad), NOT_OPTIONS],
  ['meter with options', 'invalid_argument', (wallet, bad) => wallet.meter(bad), NOT_OPTIONS],
  ['tick with options', 'invalid_argument', (wallet, bad) => metered(wallet).tick(bad), NOT_OPTIONS],
  ['end with options', 'invalid_argument', (wallet, bad) => metered(wallet).end(bad), NOT_OPTIONS],
  [
    'stream with options',
    'invalid_argument',
    async (wallet, bad) => metered(wallet).stream(NO_CHUNKS, bad),
    NOT_OPTIONS,
  ],
  [
    'stream of',
    'invalid_argument',
    async (wallet, bad) => metered(wallet).stream(bad),
    [
      ['a string', PERSONAL],
      ['an array', [1]],
      ['nothing', undefined],
    ],
  ],
  [
    'stream in units',
    'invalid_argument',
    async (wallet, units) => metered(wallet).stream(NO_CHUNKS, { units }),
    [
      ['a number', 1],
      ['text', PERSONAL],
    ],
  ],
  [
    'stream with ticks every',
    'invalid_argument',
    async (wallet, every) => metered(wallet).stream(NO_CHUNKS, { every }),
    GIVEN_NOT_POSITIVE,
  ],
  [
    'stream with signal',
    'invalid_argument',
    async (wallet, signal) => metered(wallet).stream(NO_CHUNKS, { signal }),
    [['text', PERSONAL]],
  ],
  [
    'a session id',
    'invalid_argument',
    async (wallet, bad) => wallet.sessionRef(bad),
    [...NOT_TEXT, ['none', undefined]],
  ],
  [
    'meter by',
    'invalid_argument',
    (wallet, by) => wallet.meter({ ...time, by }),
    [
      ['text', PERSONAL],
      ['nothing', undefined],
    ],
  ],
  ['meter with rate', 'invalid_amount', (wallet, rate) => wallet.meter({ ...time, rate }), NOT_POSITIVE],
  [
    'meter with per',
    'invalid_argument',
    (wallet, per) => wallet.meter({ ...time, per }),
    [...NOT_POSITIVE, ['too long', TTL_MAX + 1]],
  ],
  [
    'meter with rate times per',
    'invalid_amount',
    (wallet, rate) => wallet.meter({ ...time, rate }),
    [['too much', 2 ** 50]],
  ],
  [
    'meter by time with reserve',
    'invalid_argument',
    (wallet, reserve) => wallet.meter({ ...time, reserve }),
    [...NOT_POSITIVE, ['too long', TTL_MAX + 1]],
  ],
  [
    'meter by time with reserve',
    'invalid_amount',
    (wallet, reserve) => wallet.meter({ ...time, rate: 2 ** 43, reserve }),
    [['too much', 10_000_000]],
  ],
  [
    'meter by units with reserve',
    'invalid_argument',
    (wallet, reserve) => wallet.meter({ ...units, reserve }),
    NOT_POSITIVE,
  ],
  [
    'meter by units with reserve',
    'invalid_amount',
    (wallet, reserve) => wallet.meter({ ...units, reserve }),
    [['too much', 2 ** 52]],
  ],
  [
    'meter by units with per',
    'invalid_argument',
    (wallet, per) => wallet.meter({ ...units, per } as never),
    [
      ['one', 1],
      ['null', null],
    ],
  ],
  [
    'meter by units with rounding',
    'invalid_argument',
    (wallet, rounding) => wallet.meter({ ...units, rounding } as never),
    [['one', 'started']],
  ],
  [
    'meter with rounding',
    'invalid_argument',
    (wallet, rounding) => wallet.meter({ ...time, rounding }),
    [
      ['text', PERSONAL],
      ['null', null],
    ],
  ],
  [
    'meter with minimum',
    'invalid_amount',
    (wallet, minimum) => wallet.meter({ ...units, minimum }),
    GIVEN_NOT_POSITIVE,
  ],
  [
    'meter with heartbeat',
    'invalid_argument',
    (wallet, heartbeat) => wallet.meter({ ...units, heartbeat }),
    [...GIVEN_NOT_POSITIVE, ['too long', TTL_MAX + 1]],
  ],
  [
    'meter with share',
    'invalid_argument',
    (wallet, extendAt) => wallet.meter({ ...units, extendAt }),
    [['more than all', 1.01], ['too fine', 0.805], ...GIVEN_NOT_POSITIVE.filter(([, value]) => value !== null)],
  ],
  [
    'tick',
    'invalid_amount',
    (wallet, total) => metered(wallet).tick({ total }),
    NOT_INTEGERS.filter(([, value]) => value !== undefined),
  ],
  [
    'end',
    'invalid_amount',
    (wallet, total) => metered(wallet).end({ total }),
    NOT_INTEGERS.filter(([, value]) => value !== undefined),
  ],
  ['credit', 'invalid_amount', (wallet, bad) => wallet.credit(bad, { key }), NOT_POSITIVE],
  ['debit', 'invalid_amount', (wallet, bad) => wallet.debit(bad, { key }), NOT_POSITIVE],
  ['hold', 'invalid_amount', (wallet, bad) => wallet.hold(bad, { key, ttl }), NOT_POSITIVE],
  ['capture', 'invalid_amount', (wallet, bad) => held(wallet).capture(bad, { key }), NOT_POSITIVE],
  ['settle', 'invalid_amount', (wallet, bad) => held(wallet).settle(bad, { key }), NOT_INTEGERS],
  [
    'extend',
    'invalid_amount',
    (wallet, bad) => held(wallet).extend({ amount: bad, ttl, key }),
    NOT_POSITIVE.filter(([, value]) => value !== undefined),
  ],
  ['refund', 'invalid_amount', (wallet, bad) => wallet.refund(3, bad, { key }), NOT_POSITIVE],
  ['refund of seq', 'invalid_argument', (wallet, bad) => wallet.refund(bad, 1, { key }), NOT_POSITIVE],
  ['setCreditLimit', 'invalid_amount', (wallet, bad) => wallet.setCreditLimit(bad, { key }), NOT_INTEGERS],
  [
    'open with limit',
    'invalid_amount',
    (wallet, creditLimit) => wallet.open({ currency: 'usd', creditLimit }),
    NOT_INTEGERS.filter(([, value]) => value !== undefined),
  ],
  [
    'open with currency',
    'invalid_argument',
    (wallet, currency) => wallet.open({ currency }),
    [...NOT_TEXT, ['none', undefined]],
  ],
  [
    'open with metadata',
    'invalid_argument',
    (wallet, metadata) => wallet.open({ currency: 'usd', metadata }),
    NOT_METADATA,
  ],
  [
    'open with much metadata',
    'too_large',
    (wallet, metadata) => wallet.open({ currency: 'usd', metadata }),
    TOO_MUCH_METADATA,
  ],
  [
    'hold with ttl',
    'invalid_argument',
    (wallet, bad) => wallet.hold(5, { key, ttl: bad }),
    [...NOT_POSITIVE, ['more than 400 days', TTL_MAX + 1]],
  ],
  [
    'extend with ttl',
    'invalid_argument',
    (wallet, bad) => held(wallet).extend({ key, amount: 5, ttl: bad }),
    [...NOT_POSITIVE.filter(([, value]) => value !== undefined), ['more than 400 days', TTL_MAX + 1]],
  ],
  [
    'capture with beyond',
    'invalid_argument',
    (wallet, beyond) => held(wallet).capture(5, { key, beyond }),
    [
      ['text', PERSONAL],
      ['a boolean', true],
      ['null', null],
    ],
  ],
  [
    'settle with beyond',
    'invalid_argument',
    (wallet, beyond) => held(wallet).settle(5, { key, beyond }),
    [
      ['text', PERSONAL],
      ['a boolean', true],
      ['null', null],
    ],
  ],
  ...Object.entries(READS).flatMap(([name, read]): Case[] => [
    [`${name} with options`, 'invalid_argument', (wallet, bad, hf) => read(wallet, bad, hf), NOT_OPTIONS],
    [
      `${name} with timeout`,
      'invalid_argument',
      (wallet, timeout, hf) => read(wallet, { timeout }, hf),
      [
        ['zero', 0],
        ['text', PERSONAL],
        ['too long', 600_001],
      ],
    ],
    [
      `${name} with signal`,
      'invalid_argument',
      (wallet, signal, hf) => read(wallet, { signal }, hf),
      [['text', PERSONAL]],
    ],
  ]),
  ...Object.entries(PAGES).flatMap(([name, [read, limitMax]]): Case[] => [
    [
      `${name} with limit`,
      'invalid_argument',
      (wallet, limit, hf) => read(wallet, { limit }, hf),
      [...NOT_POSITIVE.filter(([, value]) => value !== undefined), ['too many', limitMax + 1]],
    ],
    [
      `${name} after`,
      'invalid_argument',
      (wallet, after, hf) => read(wallet, { after }, hf),
      NOT_INTEGERS.filter(([, value]) => value !== undefined),
    ],
    [
      `${name} with pending`,
      'invalid_argument',
      (wallet, pending, hf) => read(wallet, { pending }, hf),
      [
        ['text', PERSONAL],
        ['null', null],
        ['a number', 1],
      ],
    ],
  ]),
  [
    'at',
    'invalid_argument',
    (wallet, bad) => wallet.at(bad),
    [
      ['nothing', undefined],
      ['neither', {}],
      ['both', { seq: 1, time: 1 }],
      ['a date that is none', { time: new Date(Number.NaN) }],
    ],
  ],
  [
    'at seq',
    'invalid_argument',
    (wallet, seq) => wallet.at({ seq }),
    NOT_INTEGERS.filter(([, value]) => value !== undefined),
  ],
  [
    'transfer with options',
    'invalid_argument',
    (wallet, bad, hf) => hf.transfer(wallet.id, 'other', 5, bad),
    NOT_OPTIONS,
  ],
  ['transfer', 'invalid_amount', (wallet, bad, hf) => hf.transfer(wallet.id, 'other', bad, { key }), NOT_POSITIVE],
  [
    'transfer with fee',
    'invalid_amount',
    (wallet, fee, hf) => hf.transfer(wallet.id, 'other', 5, { key, fee }),
    [...NOT_INTEGERS.filter(([, value]) => value !== undefined), ['too much together', MAX - 4]],
  ],
  [
    'transfer from',
    'invalid_argument',
    (_, bad, hf) => hf.transfer(bad, 'other', 5, { key }),
    [...NOT_TEXT, ['none', undefined]],
  ],
  [
    'transfer to',
    'invalid_argument',
    (wallet, bad, hf) => hf.transfer(wallet.id, bad, 5, { key }),
    [...NOT_TEXT, ['none', undefined]],
  ],
  [
    'transfer to itself',
    'invalid_argument',
    (_, both, hf) => hf.transfer(both, both, 5, { key }),
    [['the same', 'wallet-1']],
  ],
  [
    'transfer from memory',
    'invalid_argument',
    (wallet, durability, hf) => hf.transfer(wallet.id, 'other', 5, { key, durability } as never),
    [['memory', 'memory']],
  ],
  [
    'at time',
    'invalid_argument',
    (wallet, time) => wallet.at({ time }),
    NOT_INTEGERS.filter(([, value]) => value !== undefined && value !== -1),
  ],
  ['exclusive', 'invalid_argument', (wallet, bad) => wallet.exclusive(bad), [...NOT_OPTIONS, ['none', undefined]]],
  [
    'exclusive with ttl',
    'invalid_argument',
    (wallet, ttl) => wallet.exclusive(() => 1, { ttl }),
    [
      ...NOT_POSITIVE.filter(([, value]) => value !== undefined),
      ['shorter than 100 ms', 99],
      ['longer than 10 minutes', 600_001],
    ],
  ],
  ['a wallet id', 'invalid_argument', async (_, bad, hf) => hf.wallet(bad), [...NOT_TEXT, ['none', undefined]]],
  ['a hold id', 'invalid_argument', async (wallet, bad) => wallet.holdRef(bad), [...NOT_TEXT, ['none', undefined]]],
  ...Object.entries(OPERATIONS).flatMap(([name, call]): Case[] => [
    [
      `${name} with key`,
      'invalid_argument',
      (wallet, bad, hf) => call(wallet, { key: bad }, hf),
      [...NOT_TEXT, ['one of ours', '~expire:h']],
    ],
    [
      `${name} without key`,
      'key_required',
      (wallet, bad, hf) => call(wallet, bad, hf),
      [
        ['no key', {}],
        ['undefined', { key: undefined }],
      ],
    ],
  ]),
  ...Object.entries({ ...OPERATIONS, ...KEYLESS }).flatMap(([name, call]): Case[] => [
    [
      `${name} with counter`,
      'invalid_argument',
      (wallet, counter, hf) => call(wallet, { key, counter }, hf),
      [...NOT_TEXT, ...OWN_ACCOUNTS],
    ],
    [
      `${name} with metadata`,
      'invalid_argument',
      (wallet, metadata, hf) => call(wallet, { key, metadata }, hf),
      NOT_METADATA,
    ],
    [
      `${name} with much metadata`,
      'too_large',
      (wallet, metadata, hf) => call(wallet, { key, metadata }, hf),
      TOO_MUCH_METADATA,
    ],
    [
      `${name} with durability`,
      'invalid_argument',
      (wallet, durability, hf) => call(wallet, { key, durability }, hf),
      [
        ['text', PERSONAL],
        ['null', null],
      ],
    ],
    [
      `${name} with timeout`,
      'invalid_argument',
      (wallet, timeout, hf) => call(wallet, { key, timeout }, hf),
      [
        ['zero', 0],
        ['endless', Number.POSITIVE_INFINITY],
        ['text', PERSONAL],
        ['too long', 600_001],
      ],
    ],
    [
      `${name} with signal`,
      'invalid_argument',
      (wallet, signal, hf) => call(wallet, { key, signal }, hf),
      [
        ['an object', { aborted: false }],
        ['text', PERSONAL],
      ],
    ],
  ]),
  ...Object.entries({ ...RETRIED, ...KEYLESS }).map(
    ([name, call]): Case => [
      `${name} with retry`,
      'invalid_argument',
      (wallet, retry, hf) => call(wallet, { key, retry }, hf),
      [
        ['text', PERSONAL],
        ['null', null],
        ['a number', 1],
      ],
    ],
  ),
]

const MISSPELT: [string, unknown][] = [
  ['a letter more', { tiimeout: 5 }],
  ['another case', { TimeOut: 5 }],
  ['nothing like it', { [PERSONAL]: 5 }],
]

const UNKNOWN: Case[] = Object.entries({ ...OPERATIONS, ...KEYLESS, ...READS }).map(([name, call]) => [
  `${name} with unknown options`,
  'invalid_argument',
  (wallet, bad: object, hf) => call(wallet, name in READS ? bad : { key, ...bad }, hf),
  MISSPELT,
])

describe('bad input', () => {
  onBothPaths((path) => {
    let wallet: Wallet
    let dump: Dump

    beforeAll(async () => {
      wallet = await path.wallet(200)
      await wallet.hold(50, { key: 'hold', ttl: 3_600_000 })
      await wallet.debit(10, { key: 'debit' })
      await wallet.debit(1, { key: 'last' })
      await wallet.meter({ ...units, key: 'session', heartbeat: 3_600_000 })
      dump = new Dump(path)
    })
    afterAll(() => dump.close())

    it.each([...CASES, ...UNKNOWN])('is refused by %s: %s', async (_, code, call, values) => {
      const before = await dump.take(true)
      for (const [name, value] of values) {
        // Some checks throw before there is a promise.
        const error = await refusal((async () => call(wallet, value as never, path.hf))())
        expect(error, name).toMatchObject({ code, retryable: false })
        const [, named = ''] = /^([a-zA-Z ]+): expected .+, got .+/.exec(error.message) ?? []
        expect(named, name).not.toBe('')
        expect(error.argument, name).toBe(OF_SEVERAL[named] ?? named)
        expect(`${error.message} ${JSON.stringify(error.facts)}`, name).not.toContain(PERSONAL)
      }
      expect(await dump.take(true)).toEqual(before)
    })

    it('is refused with what is known, and with what was meant', async () => {
      const error = await refusal(wallet.hold(5, { key, ttl, metdata: 5 } as never))
      expect(error).toMatchObject({ code: 'invalid_argument', argument: 'options' })
      expect(error.message).toBe(
        'options: expected only key, metadata, counter, durability, timeout, signal, retry, ttl, got metdata: did you mean metadata?',
      )
      expect((await refusal(wallet.get({ key } as never))).message).toBe(
        'options: expected only pending, timeout, signal, got key',
      )
    })

    it('is refused where it can not even be read', async () => {
      const unreadable = Object.defineProperty({ key }, 'ttl', { get: () => expect.fail(PERSONAL), enumerable: true })
      const error = await refusal(wallet.hold(5, unreadable as never))
      expect(error).toMatchObject({ code: 'invalid_argument', argument: 'options' })
      expect(error.message).toBe('options: expected an object that can be read, got one with a getter that throws')
    })

    it('is not what is inherited, or undefined', async () => {
      const inherited = Object.assign(Object.create({ key: 'inherited', other: 5 }), { unknown: undefined })
      expect(await wallet.note(inherited)).toMatchObject({ entry: { key: 'inherited' } })
      dump = new Dump(path)
    })

    it('is refused by extend that extends nothing', async () => {
      const before = await dump.take(true)
      const error = await refusal(held(wallet).extend({ key }))
      expect(error).toMatchObject({ code: 'invalid_argument' })
      expect(error.message).toMatch(/expected amount, ttl or both, got neither/)
      expect(await dump.take(true)).toEqual(before)
    })
  })
})
