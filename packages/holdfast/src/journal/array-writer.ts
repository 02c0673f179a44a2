import { isStorable } from './storable.js'

/** Types of elements by Postgres's numbers for them: these are the same in every database. */
export const ELEMENT = { bytea: 17, bigint: 20, text: 25, uuid: 2950 } as const

const HEADER_BYTES = 28
const NULL = -1
const UUID_BYTES = 16
const NUMBER_BYTES = 8
export const LENGTH_BYTES = 4
const TWO_32 = 2 ** 32
const TWO_63 = 2 ** 63

const HEX = new Uint8Array(128).fill(0xff)
for (let digit = 0; digit < 16; digit += 1) HEX[digit.toString(16).charCodeAt(0)] = digit

/**
 * An array parameter in Postgres's binary format: a header, then each element behind its length. `columns` above 0 make it an array
 * of rows. Nothing is parsed on the other side, and that side is the busy one.
 *
 *     dimensions · has nulls · type of elements · { size · lower bound } for each dimension · { length · bytes } for each element
 *
 * A value that does not fit is noted in `fits` and leaves the array unusable: sent all the same, it would break the protocol
 * instead of being refused as data.
 */
export class ArrayWriter {
  fits = true
  readonly #bytes: Buffer
  readonly #view: DataView
  #at = 0

  /** `bytesMax`: of all elements, their lengths included. */
  constructor(type: number, rows: number, columns: number, bytesMax: number) {
    this.#bytes = Buffer.allocUnsafe(HEADER_BYTES + bytesMax)
    this.#view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.byteLength)
    this.#integer(columns > 0 ? 2 : 1)
    this.#integer(1)
    this.#integer(type)
    this.#integer(rows)
    this.#integer(1)
    if (columns === 0) return
    this.#integer(columns)
    this.#integer(1)
  }

  static numberBytes(count: number): number {
    return count * (LENGTH_BYTES + NUMBER_BYTES)
  }

  null(): void {
    this.#integer(NULL)
  }

  number(value: number): void {
    const view = this.#view
    const at = this.#at
    this.#at = at + LENGTH_BYTES + NUMBER_BYTES
    view.setInt32(at, NUMBER_BYTES)
    if ((value | 0) === value) {
      view.setInt32(at + 4, value >> 31)
      view.setInt32(at + 8, value)
      return
    }
    if (!Number.isInteger(value) || value >= TWO_63 || value < -TWO_63) this.fits = false
    view.setInt32(at + 4, Math.floor(value / TWO_32))
    view.setInt32(at + 8, value)
  }

  uuid(hex: string): void {
    if (hex.length !== UUID_BYTES * 2) this.fits = false
    this.bytes(hex)
  }

  bytes(hex: string): void {
    const length = hex.length >> 1
    this.#integer(length)
    const bytes = this.#bytes
    let at = this.#at
    for (let i = 0; i < hex.length; i += 2) {
      const high = HEX[hex.charCodeAt(i)] ?? 0xff
      const low = HEX[hex.charCodeAt(i + 1)] ?? 0xff
      if ((high | low) > 0xf) this.fits = false
      bytes[at] = (high << 4) | low
      at += 1
    }
    this.#at += length
  }

  text(value: string): void {
    const bytes = this.#bytes
    const from = this.#at + LENGTH_BYTES
    // Most text is short and plain; the encoder's call alone costs more than this loop.
    for (let i = 0; i < value.length; i += 1) {
      const code = value.charCodeAt(i)
      if (code === 0 || code > 0x7f) {
        this.#encode(value)
        return
      }
      bytes[from + i] = code
    }
    this.#integer(value.length)
    this.#at = from + value.length
  }

  #encode(value: string): void {
    if (!isStorable(value)) this.fits = false
    const length = this.#bytes.write(value, this.#at + LENGTH_BYTES, 'utf8')
    this.#integer(length)
    this.#at += length
  }

  #integer(value: number): void {
    this.#view.setInt32(this.#at, value)
    this.#at += LENGTH_BYTES
  }

  end(): Buffer {
    return this.#bytes.subarray(0, this.#at)
  }
}
