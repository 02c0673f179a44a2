/** One way to keep wallets, as the callers of a benchmark use it. It lives in a worker. */
export interface Contender {
  /** Connects. Between its turns a contender stays open, with nothing to do. */
  open(): Promise<void>
  /** Makes what it needs, and wallets numbered from 0, each with `FUNDS`, ready to be used. Once, in one worker, when open. */
  seed(wallets: number): Promise<void>
  close(): Promise<void>
  /** What it returns is handed to `settle`. */
  hold(wallet: number, key: string): Promise<unknown>
  settle(wallet: number, key: string, held: unknown): Promise<void>
  /** Was the operation refused for the moment, so that the same key is to be tried again? */
  isBusy(error: unknown): boolean
  /** How much memory its state takes, if it can tell. */
  measureMemory?(): Promise<MemoryUse>
}

export interface MemoryUse {
  /** Of one wallet in use, all its recent results included. */
  readonly bytesPerWallet: number
  readonly bytesPerOpenHold: number
}

/** What a contender's own store says it did. Asked by the harness, which knows what callers were told. */
export interface Books {
  /** Cheap: entries in the store of record. Null: it says yes only once they are there, and counting would disturb it. */
  count(): Promise<number | null>
  /** Everything, the dear way: entries counted one by one, and the money of all wallets, if it keeps any. */
  tally(): Promise<Tally>
  /** Tables and indexes on disk, and where the write-ahead log stands. NaN where nothing is written to disk. */
  bytesOnDisk(): Promise<{ tables: number; log: number }>
  close(): Promise<void>
}

export interface Tally {
  readonly entries: number
  readonly money: bigint | null
}

export interface Place {
  readonly redisUrl: string
  readonly databaseUrl: string
}

/** In the smallest unit. Enough that nobody is refused: what is measured is work, not refusals. */
export const FUNDS = 1_000_000_000_000
export const HOLD_AMOUNT = 100
export const SETTLE_TOTAL = 70
export const HOLD_TTL_MS = 900_000
