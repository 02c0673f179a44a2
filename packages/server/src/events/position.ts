import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import type { FeedItem } from 'holdfast'

/**
 * How far somebody has come: all of the feed before `position`, and of that row what lies up to `run` and `offset`. `mark` is the row's: the
 * same number with another mark is a row of another history.
 */
export interface Position {
  readonly position: number
  readonly mark: number
  readonly run: number
  readonly offset: number
}

/** Behind everything in its row. */
const WHOLE_RUN = 0xffff

export const behindRow = ({ position, mark }: Pick<Position, 'position' | 'mark'>): Position => ({
  position,
  mark,
  run: WHOLE_RUN,
  offset: 0,
})

export const behindItem = (row: Pick<Position, 'position' | 'mark'>, { run, offset }: FeedItem): Position => ({
  position: row.position,
  mark: row.mark,
  run,
  offset,
})

export const isWholeRow = ({ run }: Position): boolean => run === WHOLE_RUN

export const isBehind = ({ run, offset }: Position, item: FeedItem): boolean =>
  item.run < run || (item.run === run && item.offset <= offset)

const CIPHER = 'aes-128-ecb'
const TEXT = /^[A-Za-z0-9_-]{22}$/

/**
 * Positions as text, for `Last-Event-ID`. They count what happens to all tenants, and nobody is to learn from them what others do: so they
 * are one block of a cipher, with chance in it, and the same place never looks the same twice.
 *
 *     chance 2 · position 6 · run 2 · offset 3 · mark 3
 */
export class PositionText {
  readonly #key: Buffer

  constructor(databaseSecret: Uint8Array) {
    this.#key = createHmac('sha256', databaseSecret).update('event positions v1').digest().subarray(0, 16)
  }

  write({ position, run, offset, mark }: Position): string {
    const block = Buffer.alloc(16)
    randomBytes(2).copy(block)
    block.writeUIntBE(position, 2, 6)
    block.writeUIntBE(run, 8, 2)
    block.writeUIntBE(Math.min(offset, 0xffffff), 10, 3)
    block.writeUIntBE(mark, 13, 3)
    return createCipheriv(CIPHER, this.#key, null).setAutoPadding(false).update(block).toString('base64url')
  }

  /** Null: that is none. One that was made up leads to a position and a mark that do not go together. */
  read(text: string): Position | null {
    if (!TEXT.test(text)) return null
    const block = createDecipheriv(CIPHER, this.#key, null).setAutoPadding(false).update(Buffer.from(text, 'base64url'))
    return {
      position: block.readUIntBE(2, 6),
      run: block.readUIntBE(8, 2),
      offset: block.readUIntBE(10, 3),
      mark: block.readUIntBE(13, 3),
    }
  }
}
