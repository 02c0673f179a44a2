import { createHash } from 'node:crypto'
import { integer } from '../input/index.js'

/** 'L' and the layout: what stands before the bytes of a value, as `primitives/layout.lua` reads it. */
export const LAYOUT_BYTES = 5

const VERSION_MAX = 9_999

/** Stands in the key: a layout of another version never meets the values of this one. */
export const layoutVersion = (name: string, value: unknown): number => integer(name, value, 1, VERSION_MAX)

/** What a value says that it was written by. Another one under the same version is a mistake, and is told. */
export const layoutHash = (version: number, words: readonly string[]): Buffer =>
  createHash('sha256')
    .update(JSON.stringify([version, ...words]))
    .digest()
    .subarray(0, LAYOUT_BYTES - 1)
