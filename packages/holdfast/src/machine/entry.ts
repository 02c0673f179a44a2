import { createHash } from 'node:crypto'
import type { Entry, EntryKind } from './types.js'

/**
 * An entry as text: 25 fields in a fixed order, one a line. No field can hold a line break: keys, ids and counters have no control
 * characters, metadata is JSON text. Lua writes it (`lua/wallet/entry.lua`); it is what Redis keeps and returns.
 *
 *     1 epoch      2 seq         3 kind          4 key           5 at
 *     6 amount     7 available±  8 reserved±     9 available    10 reserved
 *    11 hold      12 hold amount 13 captured    14 left         15 expires at
 *    16 refunded (of the hold)  17 of           18 refunded (of that entry)
 *    19 counter   20 params     21 metadata  |  22 prev  23 hash  |  24 due  25 since
 *
 * The hash covers prev and fields 1 to 21, each with its length in bytes before it: `40:<prev>:10:1000000001:1:1:6:credit:…`.
 */
const FIELDS = 25

export function unpackEntry(text: string): Entry {
  const field = text.split('\n')
  if (field.length !== FIELDS) throw new Error(`Expected an entry of ${FIELDS} fields, got ${field.length}`)
  return {
    epoch: Number(field[0]),
    seq: Number(field[1]),
    kind: field[2] as EntryKind,
    key: field[3] as string,
    at: Number(field[4]),
    amount: Number(field[5]),
    availableDelta: Number(field[6]),
    reservedDelta: Number(field[7]),
    available: Number(field[8]),
    reserved: Number(field[9]),
    hold: field[10] as string,
    holdAmount: Number(field[11]),
    holdCaptured: Number(field[12]),
    holdLeft: Number(field[13]),
    holdExpiresAt: Number(field[14]),
    holdRefunded: Number(field[15]),
    of: Number(field[16]),
    ofRefunded: Number(field[17]),
    counter: field[18] as string,
    params: field[19] as string,
    metadata: field[20] as string,
    prev: field[21] as string,
    hash: field[22] as string,
    due: Number(field[23]),
    since: Number(field[24]),
  }
}

/** The link of the chain: SHA-1, because that is what Redis's Lua has. */
export function hashEntry(entry: Entry): string {
  let text = `${entry.prev.length}:${entry.prev}`
  for (const field of hashedFields(entry)) text += `:${Buffer.byteLength(field)}:${field}`
  return createHash('sha1').update(text).digest('hex')
}

/** What a chain starts from: bound to the wallet, so that one wallet's journal can't be passed off as another's. */
export function genesisHash(ref: string, currency: string): string {
  return createHash('sha1')
    .update(`${ref.length}:${ref}:${Buffer.byteLength(currency)}:${currency}`)
    .digest('hex')
}

function hashedFields(entry: Entry): string[] {
  return [
    String(entry.epoch),
    String(entry.seq),
    entry.kind,
    entry.key,
    String(entry.at),
    String(entry.amount),
    String(entry.availableDelta),
    String(entry.reservedDelta),
    String(entry.available),
    String(entry.reserved),
    entry.hold,
    String(entry.holdAmount),
    String(entry.holdCaptured),
    String(entry.holdLeft),
    String(entry.holdExpiresAt),
    String(entry.holdRefunded),
    String(entry.of),
    String(entry.ofRefunded),
    entry.counter,
    entry.params,
    entry.metadata,
  ]
}
