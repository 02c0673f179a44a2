import type { CommandName } from './command-names.js'

export interface Option<T> {
  /** On the command line, without the dashes. */
  flag: string
  variable?: string
  /** What stands for the value in the help; a flag without it takes no value. */
  hint?: string
  /** All that it can be, where that is a short list: for completion. */
  values?: readonly string[]
  /** Given by its place on the command line, without the flag. */
  argument?: boolean
  text: string
  commands: readonly CommandName[]
  default?: T
  /** A default of its own for some commands. */
  defaultOf?: Partial<Record<CommandName, T>>
  /** The commands that don't start without it. */
  required?: readonly CommandName[]
  /** The option that must be given where this one is. */
  needs?: string
  /** Completes "expected …". */
  expected: string
  /** Its value holds a password: it is never repeated in a message. */
  secret?: boolean
  /** `undefined`: not allowed. */
  parse(text: string): T | undefined
}

/** Keeps each option's own type, so that `Config` knows it. */
export const option = <T>(definition: Option<T>): Option<T> => definition
