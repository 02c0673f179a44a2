import { MOVES, OF_A_HOLD, ON_A_SERVER, PAGES, SALE_PAGES, WALLETS } from '../command-names.js'
import { option } from '../option.js'
import { amount, boolean, durationMs, integer, json, oneOf, plainText, UNIT_MS, url } from '../parsers.js'

const TTL_MAX_MS = 400 * UNIT_MS.d
const AMOUNT = 'a whole number in the smallest unit, from 1 to 9007199254740991'
const AMOUNT_OR_ZERO = AMOUNT.replace('from 1', 'from 0')
const ID = '1 to 255 characters, none of them control characters'
const BEYOND = ['reject', 'available'] as const

const onOne = WALLETS.filter((name) => name !== 'wallet list')
const named = [...OF_A_HOLD, 'wallet explain'] as const
const paying = [
  'wallet credit',
  'wallet debit',
  'wallet refund',
  'wallet hold',
  'wallet capture',
  'wallet settle',
] as const
const charging = ['wallet capture', 'wallet settle'] as const
/** The others move nothing, and nothing is booked for them. */
const booked = [...paying, 'wallet extend', 'wallet release'] as const
const timed = ['wallet hold', 'wallet extend'] as const

/** Wallets, by asking a server that runs. What stands at a place on the command line comes in this order. */
export const WALLET_OPTIONS = {
  walletId: option<string>({
    flag: 'wallet',
    hint: 'wallet',
    argument: true,
    text: 'The wallet, by its id',
    commands: onOne,
    required: onOne,
    expected: ID,
    parse: plainText(255),
  }),
  holdId: option<string>({
    flag: 'hold',
    hint: 'hold',
    argument: true,
    text: 'The hold, by its id, which is the key that it was made with',
    commands: named,
    required: named,
    expected: ID,
    parse: plainText(255),
  }),
  entrySeq: option<number>({
    flag: 'seq',
    hint: 'seq',
    argument: true,
    text: 'The entry to give back: a debit, capture, tick or settle',
    commands: ['wallet refund'],
    required: ['wallet refund'],
    expected: 'the number of an entry',
    parse: amount(1),
  }),
  amount: option<number>({
    flag: 'amount',
    hint: 'amount',
    argument: true,
    text: "How much, in the wallet's smallest unit",
    commands: paying.filter((name) => name !== 'wallet settle'),
    required: paying.filter((name) => name !== 'wallet settle'),
    expected: AMOUNT,
    parse: amount(1),
  }),
  total: option<number>({
    flag: 'total',
    hint: 'total',
    argument: true,
    text: 'What the whole hold costs, captures included. What is not needed goes back',
    commands: ['wallet settle'],
    required: ['wallet settle'],
    expected: AMOUNT_OR_ZERO,
    parse: amount(0),
  }),
  newLimit: option<number>({
    flag: 'limit',
    hint: 'limit',
    argument: true,
    text: 'How far the available balance may go below zero',
    commands: ['wallet credit-limit'],
    required: ['wallet credit-limit'],
    expected: AMOUNT_OR_ZERO,
    parse: amount(0),
  }),
  currency: option<string>({
    flag: 'currency',
    hint: 'code',
    text: 'A currency, or any asset code of your own',
    commands: ['wallet open'],
    required: ['wallet open'],
    expected: ID,
    parse: plainText(255),
  }),
  creditLimit: option({
    flag: 'credit-limit',
    hint: 'amount',
    text: 'How far the available balance may go below zero',
    commands: ['wallet open'],
    default: 0,
    expected: AMOUNT_OR_ZERO,
    parse: amount(0),
  }),
  more: option<number>({
    flag: 'amount',
    hint: 'amount',
    text: 'More money for it',
    commands: ['wallet extend'],
    expected: AMOUNT,
    parse: amount(1),
  }),
  ttlMs: option<number>({
    flag: 'ttl',
    hint: 'duration',
    text: 'When what is left goes back by itself, from now: such as 15m, up to 400d',
    commands: timed,
    required: ['wallet hold'],
    expected: 'a number with ms, s, m, h or d, such as 15m, up to 400d',
    parse: durationMs(TTL_MAX_MS),
  }),
  beyond: option({
    flag: 'beyond',
    hint: 'what',
    text: 'What the hold does not cover: reject the charge, or take the rest from what is available',
    commands: charging,
    default: 'reject' as (typeof BEYOND)[number],
    values: BEYOND,
    expected: `one of ${BEYOND.join(', ')}`,
    parse: oneOf(BEYOND),
  }),
  key: option<string>({
    flag: 'key',
    hint: 'text',
    text: 'Makes it safe to repeat: the same key gives the first answer again. Without it one is made, and shown',
    commands: [...MOVES, 'sale checkout'],
    expected: '1 to 255 printable ASCII characters, not beginning with ~',
    parse: (text) => (/^(?!~)[\x20-\x7e]{1,255}$/.test(text) ? text : undefined),
  }),
  metadata: option<string>({
    flag: 'metadata',
    hint: 'json',
    text: 'Kept with it as it is, up to 4 kB',
    commands: ['wallet open', ...MOVES, 'sale purchase'],
    expected: 'JSON',
    parse: json,
  }),
  counter: option<string>({
    flag: 'counter',
    hint: 'account',
    text: 'The other side of the books. Without it: funding for credits, revenue for everything else',
    commands: [...booked, 'sale purchase'],
    expected: ID,
    parse: plainText(255),
  }),
  pending: option({
    flag: 'pending',
    text: 'What is decided, also where it is not committed yet',
    commands: ['wallet show', 'wallet holds', 'wallet entries'],
    default: false,
    expected: 'no value',
    parse: boolean,
  }),
  afterId: option<string>({
    flag: 'after',
    hint: 'id',
    text: 'Those that come after this id',
    commands: ['wallet list', 'sale list', 'sale schedules'],
    expected: ID,
    parse: plainText(255),
  }),
  after: option<number>({
    flag: 'after',
    hint: 'seq',
    text: 'What comes after this entry. Without it: from the beginning; of watch: from now on',
    commands: ['wallet holds', 'wallet entries', 'wallet watch'],
    expected: 'the number of an entry, or 0',
    parse: amount(0),
  }),
  limit: option({
    flag: 'limit',
    hint: 'number',
    text: 'How many to show at most',
    commands: [...PAGES, ...SALE_PAGES],
    default: 100,
    expected: 'a whole number from 1 to 1000',
    parse: integer(1, 1_000),
  }),
  serverUrl: option({
    flag: 'url',
    variable: 'HOLDFAST_URL',
    hint: 'url',
    text: 'The server to ask',
    commands: ON_A_SERVER,
    default: 'http://127.0.0.1:4020',
    expected: 'a URL such as https://holdfast.example.com',
    parse: url('http:', 'https:'),
  }),
  apiKey: option<string>({
    flag: 'api-key',
    variable: 'HOLDFAST_KEY',
    hint: 'text',
    text: 'An API key, or a token of the wallet. Better in the environment: flags can be seen by others. Without it, for a server on this machine: the key of dev',
    commands: ON_A_SERVER,
    secret: true,
    expected: 'an API key (hf_…) or a wallet token (hft_…)',
    parse: (text) => (/^hft?_[\x21-\x7e]+$/.test(text) ? text : undefined),
  }),
} as const
