/** A code is a letter and 32 bytes, of which the last 16 are an HMAC: these eight letters are six of them. */
const CODE_LENGTH = 44
const FROM = 33
const TO = 41
const SLOTS_MIN = 1_024

/**
 * The codes of checkouts that there were, 32 bits of each in a table that is at most half full: 8 to 16 bytes a code. One in thousands of
 * millions is taken for another: then the engine is asked, who knows.
 */
export class CodeSet {
  #slots = new Uint32Array(SLOTS_MIN)
  #size = 0

  get bytes(): number {
    return this.#slots.byteLength
  }

  add(code: string): void {
    // A key of the engine's own.
    if (code.length !== CODE_LENGTH) return
    if (this.#size * 2 >= this.#slots.length) this.#grow()
    const mark = markOf(code)
    const at = this.#find(mark)
    if (this.#slots[at] === mark) return
    this.#slots[at] = mark
    this.#size += 1
  }

  has(code: string): boolean {
    const mark = markOf(code)
    return this.#slots[this.#find(mark)] === mark
  }

  #find(mark: number): number {
    const last = this.#slots.length - 1
    let at = mark & last
    while (this.#slots[at] !== 0 && this.#slots[at] !== mark) at = (at + 1) & last
    return at
  }

  #grow(): void {
    const marks = this.#slots
    this.#slots = new Uint32Array(marks.length * 2)
    for (const mark of marks) if (mark !== 0) this.#slots[this.#find(mark)] = mark
  }
}

/** Never 0, which is an empty slot. */
const markOf = (code: string): number => Buffer.from(code.slice(FROM, TO), 'base64url').readUInt32LE(0) || 1
