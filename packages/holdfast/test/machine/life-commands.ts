/** What may come next in the life of a wallet or a sale, by chance and by what it has: mostly what can be done, and now and then what can't. */
import {
  type Command,
  checkoutWords,
  command,
  type Entry,
  type Line,
  MAX_AMOUNT,
  type Meter,
  moveWords,
  purchaseWords,
} from '../../src/machine/index.js'
import type { Chance } from './chance.js'
import { BAD_NUMBERS, START } from './commands.js'
import type { Twin } from './twin.js'

/** What a life is rich in. */
export interface Flavour {
  /** How often a number is no amount, or near the largest. */
  readonly bad: number
  readonly huge: number
  readonly holds: number
  readonly refunds: number
  readonly operator: number
  readonly ttlMaxMs: number
}

export const flavourOf = (chance: Chance): Flavour => ({
  bad: chance.of([0, 0.02]),
  huge: chance.of([0, 0.01, 0.15]),
  holds: chance.of([1, 1, 5]),
  refunds: chance.of([1, 6, 25, 25]),
  operator: chance.of([0, 1, 3]),
  ttlMaxMs: chance.of([60, 400, 3_000]),
})

export const CHARGES = ['debit', 'capture', 'tick', 'settle']
const HUGE = [MAX_AMOUNT, MAX_AMOUNT - 1, MAX_AMOUNT - 100, 2 ** 52, 2 ** 52 + 1, 2 ** 31, 2 ** 32 + 1, 1e15]
const ODD = ['', 'ü', '日本', '😀', ' ', '%d', '"', "'", '\\', '{}', ':', '~', '|', '\u2028', '\u00a0', 'é̂', '\ufffd']
const COUNTERS = ['revenue', 'fees', 'funding', 'ß counter']
const METADATA = [
  '',
  '{"a":1}',
  '{"text":"zwölf\\nBoxkämpfer"}',
  `{"x":"${'y'.repeat(4_000)}"}`,
  '{"\\u0000":"\\ud800"}',
]

export class LifeCommands {
  readonly #chance: Chance
  readonly #flavour: Flavour
  #keys = 0

  constructor(chance: Chance, flavour: Flavour) {
    this.#chance = chance
    this.#flavour = flavour
  }

  next(twin: Twin): Command {
    return twin.place.isSale ? this.#saleCommand(twin) : this.#walletCommand(twin)
  }

  /** Of nothing, so that there can be any number of them. */
  shortHold(): Command {
    return command({ kind: 'hold', key: this.#key(), amount: 0, ttlMs: this.#chance.of([150, 150, 200]) })
  }

  #key(): string {
    const chance = this.#chance
    this.#keys += 1
    // As long as a key may be.
    if (chance.happens(0.02))
      return `${this.#keys}${chance.of(['😀', '日', ' '])}`.padEnd(254, chance.of(['x', '日', ' ']))
    return `${chance.of(['k', 'K', 'a', 'z'])}${chance.of(ODD)}${this.#keys}${chance.happens(0.2) ? chance.of(ODD) : ''}`
  }

  #amount(max: number, min = 1): number {
    if (this.#chance.happens(this.#flavour.bad)) return this.#chance.of([0, ...BAD_NUMBERS])
    if (this.#chance.happens(this.#flavour.huge)) return this.#chance.of(HUGE)
    return this.#chance.int(min, max)
  }

  #ttlMs(min: number): number {
    if (this.#chance.happens(this.#flavour.bad)) return this.#chance.of([0, ...BAD_NUMBERS])
    return this.#chance.int(min, this.#flavour.ttlMaxMs)
  }

  #options(): { counter?: string; metadata?: string } {
    const chance = this.#chance
    return {
      ...(chance.happens(0.3) ? { counter: chance.of(COUNTERS) } : {}),
      ...(chance.happens(0.3) ? { metadata: chance.of(METADATA) } : {}),
    }
  }

  /** An open one mostly; or one that was, or never was. */
  #hold({ state, journal }: Twin): string {
    const open = [...state.holds.keys()]
    if (open.length > 0 && !this.#chance.happens(0.06)) return this.#chance.of(open)
    const last = this.#chance.happens(0.5) ? journal.findLast(({ hold }) => hold !== '') : undefined
    return last?.hold ?? 'none'
  }

  #walletCommand(twin: Twin): Command {
    const chance = this.#chance
    const { holds, refunds, operator } = this.#flavour
    const kind = chance.weighted({
      ...{ credit: 4, debit: 3, hold: 6 * holds, capture: 4, extend: 3, settle: 3, release: 1.5, refund: 3 * refunds },
      ...{ freeze: 0.3 * operator, unfreeze: 0.7 * operator, close: 0.15 * operator, limit: operator },
      ...{ void: 0.3, touch: 0.7, meter: 2, tick: 4, end: 0.7 },
    })
    const key = this.#key()
    const hold = this.#hold(twin)
    const beyond = chance.happens(0.5)
    const also = chance.happens(0.05) ? { also: chance.of(['to a fee 1', 'ü x']) } : {}
    switch (kind) {
      case 'credit':
        return command({ kind, key, amount: this.#amount(400), ...this.#options(), ...also })
      case 'debit':
        return command({ kind, key, amount: this.#amount(200), ...this.#options() })
      case 'hold': {
        const ttlMs = chance.happens(0.01) ? MAX_AMOUNT - START : this.#ttlMs(1)
        return command({ kind, key, amount: this.#amount(60, 0), ttlMs, ...this.#options(), ...also })
      }
      case 'capture':
        return command({ kind, key, hold, amount: this.#amount(80), beyond, ...this.#options() })
      case 'extend':
        return command({ kind, key, hold, amount: beyond ? 0 : this.#amount(100, 0), ttlMs: this.#ttlMs(0) })
      case 'settle':
        return command({ kind, key, hold, amount: this.#amount(200, 0), beyond, ...this.#options() })
      case 'release':
        return command({ kind, key, hold })
      case 'refund':
        return this.#refund(twin, key)
      case 'limit':
        return command({ kind, key, amount: chance.happens(0.3) ? chance.of(HUGE) : this.#amount(300, 0) })
      case 'touch':
        return command({ kind })
      case 'meter':
        return command({ kind, key, hold: key, meter: this.#meter(kind) })
      case 'tick':
      case 'end':
        return command({ kind, key, hold, meter: this.#meter(kind) })
      default:
        return command({ kind, key })
    }
  }

  /** Of a charge of late or of long ago; now and then with what was read too early, or under another epoch, or with nothing. */
  #refund(twin: Twin, key: string): Command {
    const chance = this.#chance
    const charges = twin.journal.filter(({ kind }) => CHARGES.includes(kind))
    const from = chance.happens(0.5) ? Math.max(0, charges.length - 8) : 0
    const isCharge = charges.length > 0 && chance.happens(0.95)
    const of = isCharge ? (charges[chance.int(from, charges.length - 1)] as Entry).seq : chance.int(1, 50)
    const read = chance.happens(0.06) ? null : twin.facts(of)
    const amount = this.#amount(12)
    if (!read) return command({ kind: 'refund', key, of, amount, charge: 0, facts: null })
    const { charge, hold, facts } = read
    const seq = chance.happens(0.2) ? Math.max(0, facts.seq - chance.int(1, 200)) : facts.seq
    const epoch = chance.happens(0.03) ? facts.epoch - 1 : facts.epoch
    return command({ kind: 'refund', key, of, amount, charge, hold, facts: { ...facts, seq, epoch } })
  }

  #meter(kind: 'meter' | 'tick' | 'end'): Meter {
    const chance = this.#chance
    const isUnits = chance.happens(0.4)
    const isBig = chance.happens(0.15)
    const perMs = isUnits ? 0 : isBig ? chance.of([1, 2 ** 27 - 1, 3_600_000, 7]) : chance.int(1, 300)
    const bigRate = isUnits
      ? chance.of([MAX_AMOUNT, 2 ** 31, 12_345_678_901])
      : Math.floor(MAX_AMOUNT / perMs / chance.of([1, 2, 1_000]))
    const least = isBig ? chance.of([0, 1, MAX_AMOUNT]) : chance.int(0, 300)
    const units = isBig ? chance.of([0, MAX_AMOUNT, 2 ** 33]) : chance.int(0, 60)
    const used = isUnits ? units : START + chance.int(-500, 3_000)
    return {
      counting: isUnits ? 'units' : chance.of(['started', 'completed', 'prorated'] as const),
      rate: isBig ? Math.max(1, bigRate) : chance.int(1, 40),
      perMs,
      stretch: isBig ? chance.of([MAX_AMOUNT, 1, 7, 2 ** 40, 2 ** 52]) : chance.int(1, 200),
      extendAtPercent: chance.of([80, 50, 99, 100, 1, 33]),
      heartbeatMs: chance.int(1, 2_000),
      measure: kind === 'meter' ? least : used,
    }
  }

  #saleCommand(twin: Twin): Command {
    const chance = this.#chance
    const kind = chance.weighted({
      ...{ checkout: 45, purchase: 17, cancel: 10, give: 5, take: 9, credit: 3, debit: 2 },
      ...{ freeze: 0.5, unfreeze: 1.5, void: 1, close: 0.5, touch: 5.5 },
    })
    const key = this.#key()
    switch (kind) {
      case 'checkout':
        return command({ kind, key, counter: 'stock', also: this.#order() })
      case 'purchase':
        return this.#purchase(twin, key)
      case 'cancel':
        return command({ kind, key, hold: this.#hold(twin) })
      case 'give':
      case 'take': {
        const lines = this.#lines().filter(({ item }, at, all) => all.findIndex((one) => one.item === item) === at)
        const total = chance.happens(0.05) ? chance.of(HUGE) : chance.int(0, 40)
        const also = moveWords({ total, lines: chance.happens(0.2) ? [] : lines })
        return command({ kind, key, counter: 'stock', also })
      }
      case 'credit':
        return command({ kind, key, amount: this.#amount(40) })
      case 'debit':
        return command({ kind, key, amount: this.#amount(20) })
      case 'touch':
        return command({ kind })
      default:
        return command({ kind, key })
    }
  }

  /** Two of the buyers may have little, the others nearly all. */
  #order(): string {
    const chance = this.#chance
    const buyer = chance.int(1, 6)
    return checkoutWords({
      reserves: buyer % 2 === 0,
      ttlMs: chance.int(1, 3 * this.#flavour.ttlMaxMs),
      from: START + 10,
      until: START + 60_000,
      perBuyer: buyer > 4 ? 6 : 400,
      buyer: `b${buyer}`,
      lines: this.#lines(),
    })
  }

  #purchase(twin: Twin, key: string): Command {
    const chance = this.#chance
    const hold = this.#hold(twin)
    const lines = twin.state.stock?.checkouts.get(hold)?.lines ?? []
    const prices = new Map((lines.length > 0 ? lines : this.#lines()).map(({ item }) => [item, chance.of([0, 25, 3])]))
    const price = lines.reduce((sum, { item, quantity }) => sum + quantity * (prices.get(item) ?? 0), 0)
    const amount = price + (chance.happens(0.1) ? 1 : 0)
    const payment = chance.happens(0.3) ? { wallet: 'a'.repeat(32), id: 'b'.repeat(32), amount, prices } : null
    const perBuyer = chance.happens(0.3) ? 6 : 400
    const also = purchaseWords({ all: chance.happens(0.5), perBuyer, payment })
    return command({ kind: 'purchase', key, hold, counter: 'stock', also })
  }

  /** A few of the same items mostly; now and then as many as there may be, and one more. */
  #lines(): Line[] {
    const chance = this.#chance
    const share = (item: number): number => [1, 1, 2, 5, 5, 12, 40][item % 7] as number
    if (chance.happens(0.05)) {
      const many = Array.from({ length: chance.int(40, 101) }, (_, n) => n + 10)
      return many.map((item) => ({ item, quantity: 1, share: share(item) }))
    }
    const items = chance.happens(0.7) ? 9 : 130
    return Array.from({ length: chance.int(1, 3) }, () => {
      const item = chance.int(1, items)
      return { item, quantity: chance.int(1, 3), share: share(item) }
    })
  }
}
