import { amount, integer, namesOf, options as optionsOf } from '../../input/index.js'
import type { Primitives } from '../primitives.js'
import { MANY_MAX, type NumberRange } from './fast-sequence.js'
import { type RowName, Rows } from './in-postgres.js'

export interface StrictSequenceOptions {
  /** How many numbers a process takes from Postgres at a time. What it has not given when it ends is a gap. Default 100, at most 1,000,000. */
  readonly blockSize?: number
}

const OPTION_NAMES = namesOf<StrictSequenceOptions>({ blockSize: true })

/** What this process has of a sequence, and has not given yet. */
interface Block {
  next: number
  last: number
  refill: Promise<void> | undefined
}

type Of = string | readonly string[]

const DEFAULT_BLOCK_SIZE = 100
/** Sequences of which this process keeps a block. Those that it forgets have a gap. */
const BLOCKS_MAX = 10_000

/**
 * Numbers that are given once: taken from Postgres in blocks, and handed out by this process alone. Redis has no part in it. There are gaps,
 * where a process ends before it has given all of its block, and processes have blocks side by side: what is later is not always greater.
 */
export class StrictSequence {
  readonly blockSize: number
  readonly #rows: Rows
  readonly #blocks = new Map<string, Block>()

  constructor({ context }: Primitives, operation: string, options: StrictSequenceOptions = {}) {
    const { blockSize = DEFAULT_BLOCK_SIZE } = optionsOf('options', options, OPTION_NAMES)
    this.blockSize = integer('blockSize', blockSize, 1, MANY_MAX)
    this.#rows = new Rows(context, operation, 'strict')
  }

  /** From 1 on. Past 2^53 − 1 it is `counter_overflow`. */
  async next(of: Of): Promise<number> {
    const row = this.#rows.name(of)
    const block = this.#blockOf(row)
    while (block.next > block.last) {
      block.refill ??= this.#refill(row, block)
      await block.refill
    }
    const number = block.next
    block.next += 1
    this.#rows.tell('given')
    return number
  }

  /** Numbers in a row. Where the block has not so many left they are taken from Postgres by themselves, beyond it: `next` goes on within it. */
  async nextMany(of: Of, count: number): Promise<NumberRange> {
    integer('count', count, 1, MANY_MAX)
    const row = this.#rows.name(of)
    const block = this.#blockOf(row)
    const first = block.next
    const isEnough = block.last - first + 1 >= count
    if (isEnough) block.next += count
    const range = isEnough ? { first, last: first + count - 1 } : await this.#take(row, count)
    this.#rows.tell('given')
    return range
  }

  /**
   * After Postgres was put back to an earlier state: it goes on after this number, unless it is beyond already. Resolves with the number
   * after which it goes on. What other processes still have of their blocks they give: stop them first.
   */
  async raise(of: Of, number: number): Promise<number> {
    const least = amount('number', number, 1)
    const row = this.#rows.name(of)
    const raised = await this.#ask(
      () => this.#rows.postgres.query<{ last: string }>('raiseSequence', [...row, false, least]),
      0,
    )
    // What is left of a block was taken before, also of one that is still on its way.
    const block = this.#blockOf(row)
    await block.refill?.catch(() => {})
    block.next = block.last + 1
    this.#rows.tell('raised')
    return Number(raised[0]?.last)
  }

  async #refill(row: RowName, block: Block): Promise<void> {
    try {
      const { first, last } = await this.#take(row, this.blockSize)
      block.next = first
      block.last = last
    } finally {
      block.refill = undefined
    }
  }

  async #take(row: RowName, count: number): Promise<NumberRange> {
    const [taken] = await this.#ask(
      () => this.#rows.postgres.query<{ last: string }>('takeNumbers', [...row, count]),
      count,
    )
    this.#rows.tell('reserved')
    const last = Number(taken?.last)
    return { first: last - count + 1, last }
  }

  async #ask<T>(ask: () => Promise<T>, by: number): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      throw this.#rows.failed(error, by)
    }
  }

  #blockOf(row: RowName): Block {
    const [, , , scope] = row
    const held = this.#blocks.get(scope)
    if (held) return held
    const block: Block = { next: 1, last: 0, refill: undefined }
    this.#blocks.set(scope, block)
    const [oldest] = this.#blocks.keys()
    // Whoever waits for it still has it: numbers of one block are given by one block alone.
    if (this.#blocks.size > BLOCKS_MAX && oldest !== undefined) this.#blocks.delete(oldest)
    return block
  }
}
