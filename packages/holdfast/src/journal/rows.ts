import type { Entry, EntryKind, HoldState, WalletState, WalletStatus } from '../machine/index.js'
import type { Owner, WalletRow } from './types.js'
import type { Inspection } from './verdicts.js'

/** Rows as Postgres gives them: a bigint comes as text. Every number in them is within ±2^53, so that Number() is exact. */
export interface EntryRow {
  seq: string
  epoch: string
  at: string
  amount: string
  available_delta: string
  reserved_delta: string
  available: string
  reserved: string
  hold_amount: string | null
  hold_captured: string | null
  hold_left: string | null
  hold_expires_at: string | null
  hold_refunded: string | null
  of_seq: string | null
  of_refunded: string | null
  kind: EntryKind
  hash_hex: string
  key: string
  hold: string | null
  counter: string
  params: string
  metadata: string | null
}

/** `prev` is not stored: it is the hash of the entry before. The bounds are not either: they belong to the wallet's row. */
export function readEntry(row: EntryRow, prev: string): Entry {
  return {
    epoch: Number(row.epoch),
    seq: Number(row.seq),
    kind: row.kind,
    key: row.key,
    at: Number(row.at),
    amount: Number(row.amount),
    availableDelta: Number(row.available_delta),
    reservedDelta: Number(row.reserved_delta),
    available: Number(row.available),
    reserved: Number(row.reserved),
    hold: row.hold ?? '',
    holdAmount: Number(row.hold_amount ?? 0),
    holdCaptured: Number(row.hold_captured ?? 0),
    holdLeft: Number(row.hold_left ?? 0),
    holdExpiresAt: Number(row.hold_expires_at ?? 0),
    holdRefunded: Number(row.hold_refunded ?? 0),
    of: Number(row.of_seq ?? 0),
    ofRefunded: Number(row.of_refunded ?? 0),
    counter: row.counter,
    params: row.params,
    metadata: row.metadata ?? '',
    prev,
    hash: row.hash_hex,
    due: 0,
    since: 0,
  }
}

export interface StateRow {
  epoch: string
  memory: boolean
  seq: string
  head: string
  at: string
  available: string
  reserved: string
  credit_limit: string
  status: WalletStatus
  due: string
  since: string
  clock: string
}

export interface HoldRow {
  hold: string
  amount: string
  captured: string
  left_over: string
  expires_at: string
  refunded: string
}

export function readState(row: StateRow, holds: readonly HoldRow[]): WalletState {
  return {
    epoch: Number(row.epoch),
    seq: Number(row.seq),
    head: row.head,
    at: Number(row.at),
    available: Number(row.available),
    reserved: Number(row.reserved),
    creditLimit: Number(row.credit_limit),
    status: row.status,
    due: Number(row.due),
    since: Number(row.since),
    holds: new Map(holds.map((hold) => [hold.hold, readHold(hold)])),
    base: Number(row.seq),
    refundedByEntry: new Map(),
    closedHolds: new Map(),
    stock: null,
  }
}

export function readHold(row: HoldRow): HoldState {
  return {
    amount: Number(row.amount),
    captured: Number(row.captured),
    left: Number(row.left_over),
    expiresAt: Number(row.expires_at),
    refunded: Number(row.refunded),
  }
}

export interface WalletTableRow extends StateRow {
  ref: string
  id: string
  currency: string
  metadata: string | null
  opened_at: string
  initial_limit: string
  owner: Owner
}

export function readWalletRow(row: WalletTableRow): WalletRow {
  return {
    ref: row.ref,
    id: row.id,
    currency: row.currency,
    metadata: row.metadata ?? '',
    openedAt: Number(row.opened_at),
    initialLimit: Number(row.initial_limit),
    epoch: Number(row.epoch),
    owner: row.owner,
    memory: row.memory,
    seq: Number(row.seq),
    head: row.head,
    at: Number(row.at),
    available: Number(row.available),
    reserved: Number(row.reserved),
    creditLimit: Number(row.credit_limit),
    status: row.status,
    due: Number(row.due),
    since: Number(row.since),
  }
}

export interface InspectionRow {
  epoch: string | null
  owner: Owner | null
  current: boolean | null
  seq: string | null
  head: string | null
  available: string | null
  reserved: string | null
  clock: string
  hash_there: string | null
  key_seq: string | null
}

export function readInspection(row: InspectionRow): Inspection {
  return {
    epoch: row.epoch === null ? null : Number(row.epoch),
    owner: row.owner ?? 'redis',
    current: row.current ?? false,
    seq: Number(row.seq ?? 0),
    head: row.head ?? '',
    available: Number(row.available ?? 0),
    reserved: Number(row.reserved ?? 0),
    hashThere: row.hash_there,
    keySeq: row.key_seq === null ? null : Number(row.key_seq),
  }
}
