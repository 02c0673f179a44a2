import { CAUSES, type Cause, EVENT_NAMES } from 'holdfast'
import { Type } from 'typebox'
import { FLAG_SCHEMAS } from './flags.js'
import { Balance, Count, Id, Metadata, oneOf, orNull, pageOf, refTo, Time } from './parts.js'
import { SALE_SCHEMAS } from './sales.js'

const ENTRY_KINDS = [
  'credit',
  'debit',
  'hold',
  'capture',
  'tick',
  'extend',
  'settle',
  'release',
  'expire',
  'refund',
  'freeze',
  'unfreeze',
  'limit',
  'close',
  'void',
] as const

const Hash = Type.String({ description: 'Hexadecimal' })
const Durability = oneOf(['ledger', 'memory'], 'Where it is safe: committed in Postgres, or decided in Redis')

export const Entry = Type.Object(
  {
    seq: Count,
    epoch: Count,
    kind: oneOf(ENTRY_KINDS),
    key: Type.String(),
    at: Time,
    amount: Count,
    availableDelta: Balance,
    reservedDelta: Balance,
    available: Balance,
    reserved: Balance,
    hold: Type.Optional(Type.String({ description: 'The hold or session that it is about' })),
    of: Type.Optional(Type.Integer({ description: 'refund: the entry that it gives back' })),
    counter: Type.String({ description: 'The other side of the books' }),
    metadata: Type.Optional(Metadata),
    prev: Hash,
    hash: Hash,
  },
  { $id: 'Entry', description: 'One line of a journal; `available` and `reserved` are the state after it' },
)

const RECEIPT = {
  entry: refTo(Entry),
  available: Balance,
  reserved: Balance,
  replayed: Type.Boolean({ description: 'The key was used before: this is the answer of the first time' }),
  durability: Durability,
}
export const Receipt = Type.Object(RECEIPT, { $id: 'Receipt' })

const HOLD_FACTS = {
  id: Id,
  amount: Type.Integer({ description: 'All that was reserved for it, extensions included' }),
  captured: Count,
  left: Type.Integer({ description: 'Still reserved' }),
  expiresAt: Time,
}
export const HoldFacts = Type.Object(HOLD_FACTS, { $id: 'HoldFacts' })
export const NewHold = Type.Object({ ...HOLD_FACTS, receipt: refTo(Receipt) }, { $id: 'NewHold' })
export const HoldReceipt = Type.Object({ ...RECEIPT, hold: refTo(HoldFacts) }, { $id: 'HoldReceipt' })

export const Hold = Type.Object(
  {
    ...HOLD_FACTS,
    status: oneOf(['open', 'settled', 'released', 'expired']),
    refunded: Count,
    seq: Type.Integer({ description: 'The entry that made it' }),
    madeAt: Time,
    closedAt: Type.Optional(Time),
    metadata: Type.Optional(Metadata),
  },
  { $id: 'Hold' },
)

export const Wallet = Type.Object(
  {
    id: Id,
    currency: Type.String(),
    available: Balance,
    reserved: Balance,
    creditLimit: Count,
    status: oneOf(['active', 'frozen', 'closed']),
    seq: Type.Integer({ description: 'The number of its last entry' }),
    epoch: Count,
    head: Hash,
    openedAt: Time,
    updatedAt: Time,
    metadata: Type.Optional(Metadata),
  },
  { $id: 'Wallet' },
)

export const PastBalance = Type.Object(
  {
    id: Id,
    currency: Type.String(),
    seq: Count,
    at: Time,
    available: Balance,
    reserved: Balance,
    head: Hash,
    complete: Type.Boolean({ description: 'Nothing that was done by then can come any more' }),
  },
  { $id: 'PastBalance' },
)

const SESSION = {
  id: Id,
  by: oneOf(['time', 'units']),
  startedAt: Time,
  charged: Type.Integer({ description: 'All that was charged so far' }),
  reserved: Type.Integer({ description: 'All that was reserved for it so far' }),
  left: Type.Integer({ description: 'Reserved and not charged yet' }),
  final: Type.Boolean({ description: 'There is no money for more: what is left is the last' }),
  runsOutAt: orNull(Time),
  unitsLeft: orNull(Type.Integer()),
  expiresAt: Type.Integer({ description: 'Without another tick it ends then' }),
  ended: Type.Boolean(),
  endedBy: Type.Unsafe<'end' | 'expiry' | 'release' | 'settle' | null>({
    type: ['string', 'null'],
    enum: ['end', 'expiry', 'release', 'settle', null],
  }),
}
export const Session = Type.Object(SESSION, { $id: 'Session' })
export const SessionReceipt = Type.Object({ ...SESSION, receipt: refTo(Receipt) }, { $id: 'SessionReceipt' })

const MONEY = {
  reserved: Balance,
  beyond: Balance,
  charged: Balance,
  returned: Balance,
  refunded: Balance,
}
const HoldStep = Type.Object({
  ...MONEY,
  entry: refTo(Entry),
  left: Balance,
  pending: Type.Boolean(),
  text: Type.String(),
})
export const HoldExplanation = Type.Object(
  {
    hold: refTo(Hold),
    currency: Type.String(),
    money: Type.Object({ ...MONEY, left: Balance, spent: Balance, back: Balance }),
    steps: Type.Array(HoldStep),
    more: Type.Boolean({ description: 'There are more steps: read on `after` the last one’s seq' }),
    text: Type.String({ description: 'All of it in plain English, a line a step' }),
  },
  { $id: 'HoldExplanation' },
)

export const Transfer = Type.Object(
  { from: refTo(Receipt), to: refTo(Receipt), amount: Count, fee: Count, replayed: Type.Boolean() },
  { $id: 'Transfer' },
)

export const Webhook = Type.Object(
  {
    id: Id,
    url: Type.String(),
    events: Type.Array(oneOf(EVENT_NAMES)),
    walletPrefix: Type.String({ description: 'Only of wallets whose id begins with it; empty: of all' }),
    balanceLow: orNull(Balance),
    createdAt: Time,
    failingSince: orNull({ ...Time, description: 'Since when it takes nothing. Null: it does' }),
    waiting: Type.Integer({ description: 'Events that wait for another try' }),
    dead: Type.Integer({ description: 'Events that it did not take within a day' }),
  },
  { $id: 'Webhook' },
)

export const FindingCounts = Type.Object({ found: Count, repaired: Count, unrepaired: Count }, { $id: 'FindingCounts' })

const FindingValue = Type.Unsafe<string | number | null>({ type: ['string', 'number', 'null'] })
export const Finding = Type.Object(
  {
    id: Count,
    cause: oneOf(Object.keys(CAUSES) as Cause[]),
    wallet: orNull({ ...Id, description: 'Null: there is no such wallet, or it is about none' }),
    ref: Type.String({
      description: 'What stands for the wallet where its id must not: in keys of Redis, and in logs',
    }),
    shard: Count,
    field: Type.Optional(Type.String({ description: 'Which number it is about' })),
    seq: Type.Optional(Type.Integer({ description: 'The entry it is about; for a hold the one that made it' })),
    expected: FindingValue,
    found: FindingValue,
    action: oneOf(['repaired', 'reported', 'failed'], 'What the last audit that found it did about it'),
    firstAt: Time,
    lastAt: Time,
    times: Count,
  },
  { $id: 'Finding' },
)

export const FindingPage = pageOf(refTo(Finding), Type.Integer())
export const WalletPage = pageOf(refTo(Wallet), Id)
export const HoldPage = pageOf(refTo(Hold), Type.Integer())
export const EntryPage = pageOf(refTo(Entry), Type.Integer())

/** What other schemas refer to. */
export const SHARED = [
  Entry,
  Receipt,
  HoldFacts,
  NewHold,
  HoldReceipt,
  Hold,
  Wallet,
  PastBalance,
  Session,
  SessionReceipt,
  HoldExplanation,
  Transfer,
  Webhook,
  FindingCounts,
  Finding,
  ...FLAG_SCHEMAS,
  ...SALE_SCHEMAS,
]
