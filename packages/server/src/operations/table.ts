import { Type } from 'typebox'
import {
  Amount,
  AmountOrZero,
  Beyond,
  HoldReceipt,
  NewHold,
  Receipt,
  refTo,
  Seq,
  SessionReceipt,
  TtlMs,
} from '../schemas/index.js'
import { type Operation, operation } from './operation.js'

const receipt = refTo(Receipt)
const holdReceipt = refTo(HoldReceipt)
const SPENDING = ['insufficient_funds', 'wallet_frozen', 'wallet_closed'] as const
const OF_A_HOLD = ['hold_not_found', 'hold_closed', 'hold_expired', 'wallet_closed'] as const

const wallets = [
  operation({
    name: 'credit',
    operationId: 'creditWallet',
    path: '/credits',
    summary: 'Put money in',
    tag: 'wallets',
    scope: 'fund',
    keyed: true,
    body: { amount: Amount },
    answer: receipt,
    refusals: ['wallet_closed'],
    run: ({ wallet }, { amount }, options) => wallet.credit(amount, options),
  }),
  operation({
    name: 'debit',
    operationId: 'debitWallet',
    path: '/debits',
    summary: 'Check and take in one step',
    tag: 'wallets',
    scope: 'spend',
    keyed: true,
    body: { amount: Amount },
    answer: receipt,
    refusals: SPENDING,
    run: ({ wallet }, { amount }, options) => wallet.debit(amount, options),
  }),
  operation({
    name: 'refund',
    operationId: 'refundEntry',
    path: '/refunds',
    summary: 'Give back a debit, capture, tick or settle: partly, repeatedly, never more than it was',
    tag: 'wallets',
    scope: 'fund',
    keyed: true,
    body: { seq: Seq, amount: Amount },
    answer: receipt,
    refusals: ['entry_not_found', 'refund_exceeded', 'wallet_closed'],
    run: ({ wallet }, { seq, amount }, options) => wallet.refund(seq, amount, options),
  }),
  operation({
    name: 'freeze',
    operationId: 'freezeWallet',
    path: '/freeze',
    summary: 'Spend and reserve nothing from now on; what was reserved can still be used',
    tag: 'wallets',
    scope: 'admin',
    keyed: true,
    body: {},
    answer: receipt,
    refusals: ['wallet_closed'],
    run: ({ wallet }, _, options) => wallet.freeze(options),
  }),
  operation({
    name: 'unfreeze',
    operationId: 'unfreezeWallet',
    path: '/unfreeze',
    summary: 'Let it spend again',
    tag: 'wallets',
    scope: 'admin',
    keyed: true,
    body: {},
    answer: receipt,
    refusals: ['wallet_closed'],
    run: ({ wallet }, _, options) => wallet.unfreeze(options),
  }),
  operation({
    name: 'credit-limit',
    operationId: 'setCreditLimit',
    path: '/credit-limit',
    summary: 'How far the available balance may go below zero',
    tag: 'wallets',
    scope: 'admin',
    keyed: true,
    body: { amount: AmountOrZero },
    answer: receipt,
    refusals: ['insufficient_funds', 'wallet_closed'],
    run: ({ wallet }, { amount }, options) => wallet.setCreditLimit(amount, options),
  }),
  operation({
    name: 'close',
    operationId: 'closeWallet',
    path: '/close',
    summary: 'Close an empty wallet for good',
    tag: 'wallets',
    scope: 'admin',
    keyed: true,
    body: {},
    answer: receipt,
    refusals: ['wallet_not_empty', 'wallet_closed'],
    run: ({ wallet }, _, options) => wallet.close(options),
  }),
]

const holds = [
  operation({
    name: 'hold',
    operationId: 'createHold',
    path: '/holds',
    summary: 'Set money aside until it is settled, released, or its time is over. Its id is the key',
    tag: 'holds',
    scope: 'spend',
    keyed: true,
    body: { amount: Amount, ttl: TtlMs },
    answer: refTo(NewHold),
    refusals: SPENDING,
    run: async ({ wallet }, { amount, ttl }, options) => {
      const { id, captured, left, expiresAt, receipt, ...hold } = await wallet.hold(amount, { ...options, ttl })
      return { id, amount: hold.amount, captured, left, expiresAt, receipt }
    },
  }),
  operation({
    name: 'capture',
    operationId: 'captureHold',
    path: '/holds/:hold/captures',
    summary: 'Spend out of the hold; as often as wanted',
    tag: 'holds',
    scope: 'spend',
    keyed: true,
    body: { amount: Amount, beyond: Type.Optional(Beyond) },
    answer: holdReceipt,
    refusals: [...OF_A_HOLD, 'hold_exceeded', 'insufficient_funds', 'wallet_frozen'],
    run: ({ wallet, hold }, { amount, beyond = 'reject' }, options) =>
      wallet.holdRef(hold).capture(amount, { ...options, beyond }),
  }),
  operation({
    name: 'extend',
    operationId: 'extendHold',
    path: '/holds/:hold/extend',
    summary: 'More money, more time, or both, in one step',
    tag: 'holds',
    scope: 'spend',
    keyed: true,
    body: { amount: Type.Optional(Amount), ttl: Type.Optional(TtlMs) },
    answer: holdReceipt,
    refusals: [...OF_A_HOLD, 'insufficient_funds', 'wallet_frozen'],
    run: ({ wallet, hold }, { amount, ttl }, options) =>
      wallet.holdRef(hold).extend({
        ...options,
        ...(amount !== undefined && { amount }),
        ...(ttl !== undefined && { ttl }),
      }),
  }),
  operation({
    name: 'settle',
    operationId: 'settleHold',
    path: '/holds/:hold/settle',
    summary: 'Final: `total` is what the whole hold costs, captures included. What is not needed goes back',
    tag: 'holds',
    scope: 'spend',
    keyed: true,
    body: { total: AmountOrZero, beyond: Type.Optional(Beyond) },
    answer: holdReceipt,
    refusals: [...OF_A_HOLD, 'hold_exceeded', 'refund_exceeded', 'insufficient_funds', 'wallet_frozen'],
    run: ({ wallet, hold }, { total, beyond = 'reject' }, options) =>
      wallet.holdRef(hold).settle(total, { ...options, beyond }),
  }),
  operation({
    name: 'release',
    operationId: 'releaseHold',
    path: '/holds/:hold/release',
    summary: 'Give back what is left, and close it',
    tag: 'holds',
    scope: 'spend',
    keyed: true,
    body: {},
    answer: holdReceipt,
    refusals: OF_A_HOLD,
    run: ({ wallet, hold }, _, options) => wallet.holdRef(hold).release(options),
  }),
]

const Total = Type.Optional(
  Type.Integer({
    ...AmountOrZero,
    description: 'By units: all that was delivered so far, never a difference. By time: none',
  }),
)

const sessions = [
  operation({
    name: 'tick',
    operationId: 'tickSession',
    path: '/sessions/:session/tick',
    summary: 'Charge what is due by now, reserve more where needed, and keep the session alive. Safe to repeat',
    tag: 'sessions',
    scope: 'spend',
    keyed: false,
    body: { total: Total },
    answer: refTo(SessionReceipt),
    refusals: ['session_not_found', 'wallet_closed'],
    run: ({ wallet, session }, { total }, { key, ...options }) =>
      wallet.sessionRef(session).tick({ ...options, ...(total !== undefined && { total }) }),
  }),
  operation({
    name: 'end',
    operationId: 'endSession',
    path: '/sessions/:session/end',
    summary: 'Charge what is due, give back the rest, and close it. Again or late: the first answer',
    tag: 'sessions',
    scope: 'spend',
    keyed: false,
    body: { total: Total },
    answer: refTo(SessionReceipt),
    refusals: ['session_not_found', 'wallet_closed'],
    run: ({ wallet, session }, { total }, { key, ...options }) =>
      wallet.sessionRef(session).end({ ...options, ...(total !== undefined && { total }) }),
  }),
]

export const OPERATIONS: readonly Operation[] = [...wallets, ...holds, ...sessions]
