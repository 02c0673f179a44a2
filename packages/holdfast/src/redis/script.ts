/** A Lua script as the generator makes it from `lua/*.lua`: the code, and what its contract promises. */
export interface Script {
  /** The file's name; also the label of its metrics. */
  readonly name: string
  readonly sha1: string
  /** How many keys a call names: exactly `min`, or at least that many where `variable`. */
  readonly keys: { readonly min: number; readonly variable: boolean }
  /** Whether a call whose reply was lost may be sent again. `never`: once it may have run, nobody but the caller may decide. */
  readonly resend: 'safe' | 'never'
  /** The most commands a call may carry: while a script runs, the server serves nobody else. */
  readonly batchMax: number | null
  /** Which ARGV (from 1) carries the number of commands, where there is a `batchMax`. */
  readonly batchArg: number
  readonly readonly: boolean
  readonly source: string
}
