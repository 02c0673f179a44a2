import { createHash } from 'node:crypto'
import type { Entry, EntryKind } from './types.js'

/**
 * An entry as bytes: what Lua writes (`lua/wallet/entry.lua`), Redis keeps, and the chain is made of. Strings come with their length in
 * bytes before them, numbers as doubles (exact up to 2^53), little-endian throughout.
 *
 *     prev (40 hexadecimal digits)
 *     kind (length of 1 byte) · key · hold · counter · params (2 bytes each) · metadata (4 bytes)
 *     epoch  seq  at  amount  available±  reserved±  available  reserved
 *     hold: amount  captured  left  expires at  refunded  ·  of  refunded of that entry
 *     hash (40 hexadecimal digits)
 *     due  since
 *
 * The hash is over all that stands before it: SHA-1, because that is what Redis's Lua has.
 */
const NUMBERS = 15
const DIGEST = 40

/** So many last entries there is always room for in Redis (the ring of `lua/wallet/recent.lua`), and a wallet used from memory comes with them. */
export const REMEMBERED = 16

/** Unpacks the entry that begins at `from`; `entryEnd` tells where it ends. */
export function unpackEntry(bytes: Buffer, from = 0): Entry {
  const kindAt = from + DIGEST + 1
  const keyAt = kindAt + (bytes[kindAt - 1] as number) + 2
  const holdAt = keyAt + bytes.readUInt16LE(keyAt - 2) + 2
  const counterAt = holdAt + bytes.readUInt16LE(holdAt - 2) + 2
  const paramsAt = counterAt + bytes.readUInt16LE(counterAt - 2) + 2
  const metadataAt = paramsAt + bytes.readUInt16LE(paramsAt - 2) + 4
  const numbersAt = metadataAt + bytes.readUInt32LE(metadataAt - 4)
  const hashAt = numbersAt + NUMBERS * 8
  const boundsAt = hashAt + DIGEST
  return {
    epoch: bytes.readDoubleLE(numbersAt),
    seq: bytes.readDoubleLE(numbersAt + 8),
    kind: bytes.toString('latin1', kindAt, keyAt - 2) as EntryKind,
    key: bytes.toString('utf8', keyAt, holdAt - 2),
    at: bytes.readDoubleLE(numbersAt + 16),
    amount: bytes.readDoubleLE(numbersAt + 24),
    availableDelta: bytes.readDoubleLE(numbersAt + 32),
    reservedDelta: bytes.readDoubleLE(numbersAt + 40),
    available: bytes.readDoubleLE(numbersAt + 48),
    reserved: bytes.readDoubleLE(numbersAt + 56),
    hold: bytes.toString('utf8', holdAt, counterAt - 2),
    holdAmount: bytes.readDoubleLE(numbersAt + 64),
    holdCaptured: bytes.readDoubleLE(numbersAt + 72),
    holdLeft: bytes.readDoubleLE(numbersAt + 80),
    holdExpiresAt: bytes.readDoubleLE(numbersAt + 88),
    holdRefunded: bytes.readDoubleLE(numbersAt + 96),
    of: bytes.readDoubleLE(numbersAt + 104),
    ofRefunded: bytes.readDoubleLE(numbersAt + 112),
    counter: bytes.toString('utf8', counterAt, paramsAt - 2),
    params: bytes.toString('utf8', paramsAt, metadataAt - 4),
    metadata: bytes.toString('utf8', metadataAt, numbersAt),
    prev: bytes.toString('latin1', from, from + DIGEST),
    hash: bytes.toString('latin1', hashAt, boundsAt),
    due: bytes.readDoubleLE(boundsAt),
    since: bytes.readDoubleLE(boundsAt + 8),
  }
}

/** Where an entry ends that begins at `from`. */
export function entryEnd(bytes: Buffer, from: number): number {
  let at = from + DIGEST + 1 + (bytes[from + DIGEST] as number)
  for (let string = 0; string < 4; string += 1) at += 2 + bytes.readUInt16LE(at)
  return at + 4 + bytes.readUInt32LE(at) + NUMBERS * 8 + DIGEST + 2 * 8
}

export function packEntry(entry: Entry): Buffer {
  const behind = Buffer.allocUnsafe(DIGEST + 2 * 8)
  const at = behind.write(entry.hash, 'latin1')
  behind.writeDoubleLE(entry.since, behind.writeDoubleLE(entry.due, at))
  return Buffer.concat([packHashed(entry), behind])
}

export function hashEntry(entry: Entry): string {
  return createHash('sha1').update(packHashed(entry)).digest('hex')
}

/** Is it what its hash is of? Also of something that somebody has damaged beyond being an entry. */
export function isWhole(entry: Entry): boolean {
  try {
    return hashEntry(entry) === entry.hash
  } catch (error) {
    // A length that does not fit where it is written.
    if (error instanceof RangeError) return false
    throw error
  }
}

/** Postgres stores integers, and so many digits of them as a double has. Others come from a state that somebody has damaged. */
export function hasNumbers(entry: Entry): boolean {
  return Object.values(entry).every((value) => typeof value !== 'number' || Number.isSafeInteger(value))
}

function packHashed(entry: Entry): Buffer {
  const strings = [entry.kind, entry.key, entry.hold, entry.counter, entry.params, entry.metadata]
  const lengths = strings.map((string) => Buffer.byteLength(string))
  const bytes = Buffer.allocUnsafe(lengths.reduce((sum, length) => sum + length, DIGEST + 1 + 4 * 2 + 4 + NUMBERS * 8))
  let at = bytes.write(entry.prev, 'latin1')
  for (const [index, string] of strings.entries()) {
    at = bytes.writeUIntLE(lengths[index] as number, at, LENGTH_BYTES[index] as number)
    at += bytes.write(string, at)
  }
  // Zero has a sign in JavaScript, and another pattern of bits with it.
  for (const number of numbersOf(entry)) at = bytes.writeDoubleLE(number + 0, at)
  return bytes
}

const LENGTH_BYTES = [1, 2, 2, 2, 2, 4]

/** What a chain starts from: bound to the wallet, so that one wallet's journal can't be passed off as another's. */
export function genesisHash(ref: string, currency: string): string {
  return createHash('sha1')
    .update(`${ref.length}:${ref}:${Buffer.byteLength(currency)}:${currency}`)
    .digest('hex')
}

function numbersOf(entry: Entry): number[] {
  return [
    entry.epoch,
    entry.seq,
    entry.at,
    entry.amount,
    entry.availableDelta,
    entry.reservedDelta,
    entry.available,
    entry.reserved,
    entry.holdAmount,
    entry.holdCaptured,
    entry.holdLeft,
    entry.holdExpiresAt,
    entry.holdRefunded,
    entry.of,
    entry.ofRefunded,
  ]
}
