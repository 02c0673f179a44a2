import { SERVERS } from '../command-names.js'
import { option } from '../option.js'
import { integer, oneOf } from '../parsers.js'

const EARLY_REJECT = ['bitmap', 'bloom', 'off'] as const

/** What a server does for sales. */
export const SELLING = {
  saleAttemptsKeepMs: option({
    flag: 'sale-attempts-keep-ms',
    variable: 'HOLDFAST_SALE_ATTEMPTS_KEEP_MS',
    hint: 'ms',
    text: 'How long it is on record what was tried in sales, refused or not. Every process takes away what is older. 0: this one records nothing',
    commands: SERVERS,
    default: 2_592_000_000,
    expected: 'milliseconds from 60000 to 316224000000, or 0',
    parse: (text) => (text === '0' ? 0 : integer(60_000, 316_224_000_000)(text)),
  }),
  saleSchedulesMs: option({
    flag: 'sale-schedules-ms',
    variable: 'HOLDFAST_SALE_SCHEDULES_MS',
    hint: 'ms',
    text: 'How often this server looks for schedules that it has to open sales of, of all tenants. Each sale is opened once, however many servers look. 0: it leaves that to others',
    commands: SERVERS,
    default: 5_000,
    expected: 'milliseconds from 100 to 60000, or 0',
    parse: (text) => (text === '0' ? 0 : integer(100, 60_000)(text)),
  }),
  saleEarlyReject: option({
    flag: 'sale-early-reject',
    variable: 'HOLDFAST_SALE_EARLY_REJECT',
    hint: 'how',
    text: 'How checkouts of what is sold for good are refused without asking Redis: by one exact bit for each item, by a Bloom filter before that (to compare: it costs more and brings nothing), or not at all',
    commands: SERVERS,
    default: 'bitmap' as (typeof EARLY_REJECT)[number],
    values: EARLY_REJECT,
    expected: `one of ${EARLY_REJECT.join(', ')}`,
    parse: oneOf(EARLY_REJECT),
  }),
  saleEarlyRejectMs: option({
    flag: 'sale-early-reject-ms',
    variable: 'HOLDFAST_SALE_EARLY_REJECT_MS',
    hint: 'ms',
    text: 'How often what is sold is read from the journal for that, while somebody asks for it',
    commands: SERVERS,
    default: 10_000,
    expected: 'milliseconds from 10 to 3600000',
    parse: integer(10, 3_600_000),
  }),
  saleBloomItems: option<number>({
    flag: 'sale-bloom-items',
    variable: 'HOLDFAST_SALE_BLOOM_ITEMS',
    hint: 'number',
    text: 'For how many items the Bloom filter of a sale is made. Without it: 100,000, or as many as the sale has',
    commands: SERVERS,
    expected: 'a whole number from 1 to 1000000',
    parse: integer(1, 1_000_000),
  }),
  saleBloomRate: option({
    flag: 'sale-bloom-rate',
    variable: 'HOLDFAST_SALE_BLOOM_RATE',
    hint: 'rate',
    text: 'How often the Bloom filter takes an item for sold that is not. Such a hit is verified before anybody is told',
    commands: SERVERS,
    default: 0.01,
    expected: 'a number from 0.000001 to 0.5, such as 0.01',
    parse: rate,
  }),
} as const

function rate(text: string): number | undefined {
  const value = /^0?\.\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  return value >= 1e-6 && value <= 0.5 ? value : undefined
}
