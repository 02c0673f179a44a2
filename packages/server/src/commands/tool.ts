import { Holdfast, HoldfastError } from 'holdfast'
import type { ReadConfig } from '../config/index.js'
import { openConnections, untilSignal } from '../lifecycle/index.js'
import { StartError } from '../lifecycle/start-error.js'
import type { Terminal } from './command.js'

/** Whoever looks at a terminal for so long without a sign wonders. */
const PROGRESS_MS = 1_000

export interface Work {
  hf: Holdfast
  /** Fires when somebody presses Ctrl-C. */
  signal: AbortSignal
  /** At most one line a second, and none in the first. */
  progress(line: () => string): void
}

/** Connects, works, and ends: for commands that are at work on both servers for a while. */
export async function withHoldfast<T>(
  { config, nameOf }: ReadConfig,
  terminal: Terminal,
  work: (given: Work) => Promise<T>,
  databaseConnections = 4,
): Promise<T> {
  const connections = await openConnections({
    redisUrl: config.redisUrl as string,
    databaseUrl: config.databaseUrl as string,
    schema: config.schema as string,
    redisConnections: 1,
    databaseConnections,
    migrate: false,
    names: { redis: nameOf('redisUrl'), postgres: nameOf('databaseUrl') },
    telemetry: {},
  })
  const stop = new AbortController()
  void untilSignal().then(() => stop.abort())
  const progress = progressOf(terminal)
  try {
    const { redis, postgres } = connections
    // How long attempts are kept is for servers to say: one that takes long must not take any away.
    const hf = await Holdfast.connect({ redis, postgres, migrate: false, audit: false, saleAttempts: false })
    try {
      return await work({ hf, signal: stop.signal, progress })
    } finally {
      await hf.close()
    }
  } catch (error) {
    if (HoldfastError.is(error, 'aborted')) throw new StartError('Stopped before it was done')
    if (HoldfastError.is(error, 'invalid_argument')) throw new StartError(error.message)
    if (HoldfastError.is(error, 'unavailable')) throw new StartError(error.message)
    throw error
  } finally {
    await connections.close()
  }
}

/** At most one line a second, and none in the first. */
export function progressOf(terminal: Terminal): Work['progress'] {
  let toldAt = performance.now()
  return (line) => {
    if (performance.now() - toldAt < PROGRESS_MS) return
    toldAt = performance.now()
    terminal.progress(line())
  }
}

export const number = (value: number): string => value.toLocaleString('en-US')
