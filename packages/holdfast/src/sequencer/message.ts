/** Packs and reads the messages of the scripts: little-endian, numbers as doubles, strings with their length in bytes before them. */

const FIRST_BYTES = 16_384
/** What one character can take in UTF-8. */
const CHARACTER_BYTES = 3
const LIFE_BYTES = 32
/** Odd and large, so that every byte of a key matters. Two keys with one mark cost a look at the entry, and nothing else. */
const MARK_FACTOR = 0x9e3779b1

/** Of the bytes of a key: by these four it can be looked for. */
function markOf(bytes: Buffer, from: number, to: number): number {
  let mark = 0
  for (let i = from; i < to; i += 1) mark = (Math.imul(mark, MARK_FACTOR) + (bytes[i] as number)) | 0
  return mark
}

export function markBytes(key: string): Buffer {
  const bytes = Buffer.from(key)
  const mark = Buffer.allocUnsafe(4)
  mark.writeInt32LE(markOf(bytes, 0, bytes.length))
  return mark
}

const NO_LIFE = '-'.repeat(LIFE_BYTES)

/** One message after the other in one buffer that grows to what the largest needed. */
export class MessageWriter {
  #bytes = Buffer.allocUnsafe(FIRST_BYTES)
  #at = 0

  /** What was begun and could not be finished is forgotten: it must never go along with the next one. */
  begin(): void {
    this.#at = 0
  }

  byte(value: number): void {
    this.#reserve(1)
    this.#bytes[this.#at] = value
    this.#at += 1
  }

  short(value: number): void {
    this.#reserve(2)
    this.#at = this.#bytes.writeUInt16LE(value, this.#at)
  }

  number(value: number): void {
    this.#reserve(8)
    this.#at = this.#bytes.writeDoubleLE(value, this.#at)
  }

  /** With a length of one byte, two or four. */
  string(value: string, lengthBytes: 1 | 2 | 4): void {
    this.#reserve(lengthBytes + value.length * CHARACTER_BYTES)
    const from = this.#at + lengthBytes
    const length = value === '' ? 0 : this.#bytes.write(value, from)
    this.#bytes.writeUIntLE(length, this.#at, lengthBytes)
    this.#at = from + length
  }

  /** The string, and then four bytes made of it, by which it can be looked for. */
  markedString(value: string, lengthBytes: 2): void {
    const from = this.#at + lengthBytes
    this.string(value, lengthBytes)
    this.#reserve(4)
    this.#at = this.#bytes.writeInt32LE(markOf(this.#bytes, from, this.#at), this.#at)
  }

  /** Which life of a server, or that of none: always as long. */
  life(value: string | null): void {
    this.#reserve(LIFE_BYTES)
    this.#bytes.write(value ?? NO_LIFE, this.#at, LIFE_BYTES, 'latin1')
    this.#at += LIFE_BYTES
  }

  /** The message: a copy, because it may wait to be sent while the next one is written. */
  take(): Buffer {
    const message = Buffer.from(this.#bytes.subarray(0, this.#at))
    this.#at = 0
    return message
  }

  #reserve(more: number): void {
    if (this.#at + more <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(2 * (this.#at + more))
    this.#bytes.copy(larger, 0, 0, this.#at)
    this.#bytes = larger
  }
}

export class MessageReader {
  readonly bytes: Buffer
  at = 0

  constructor(bytes: Buffer) {
    this.bytes = bytes
  }

  byte(): number {
    return this.bytes.readUInt8(this.at++)
  }

  count(): number {
    const value = this.bytes.readUInt32LE(this.at)
    this.at += 4
    return value
  }

  number(): number {
    const value = this.bytes.readDoubleLE(this.at)
    this.at += 8
    return value
  }

  life(): string {
    const value = this.bytes.toString('latin1', this.at, this.at + LIFE_BYTES)
    this.at += LIFE_BYTES
    return value
  }

  string(length: number): string {
    const value = this.bytes.toString('utf8', this.at, this.at + length)
    this.at += length
    return value
  }
}
