import { integer, invalid, namesOf, oneOf, options as optionsOf, show } from '../../input/index.js'
import { durationMs, TIMER_MAX_MS } from '../keys.js'

export interface FlightTimes {
  /** For how long a value is fresh. */
  readonly ttlMs: number
  /** For how long after that it may be given while it is loaded anew. */
  readonly staleMs: number
}

const TIME_NAMES = namesOf<FlightTimes>({ ttlMs: true, staleMs: true })

export interface SingleFlightOptions extends Partial<FlightTimes> {
  /** How long others wait when the process that loads dies. Renewed while it loads. 100 ms to a day; default 5 s. */
  readonly markerMs?: number
  /** A load is given up after this: `markerMs` to a day. Default one minute, or `markerMs`. */
  readonly loadMaxMs?: number
  /** How long a caller waits for a value that somebody else loads: up to a day; 0: not at all. Default 10 s. */
  readonly waitMs?: number
  /** What a caller gets who has waited for so long: `timeout`, or what it loads itself. Default `'error'`. */
  readonly afterWait?: 'error' | 'load'
  /** After a load that failed nobody tries for this long. Default 1 s. */
  readonly failedMs?: number
  /** How early a value is loaded anew before it is stale, in times that a load takes. 0: not before. Default 1. */
  readonly eagerness?: number
  /** Of what the application puts into the value: one of another version is as good as none. Default 1. */
  readonly schemaVersion?: number
  /** The largest value, bytes of JSON. Default 262,144. */
  readonly bytesMax?: number
  /** Of how many scopes this process remembers the last value, for when Redis is away. Default 1,000. */
  readonly keptMax?: number
}

const OPTION_NAMES = namesOf<SingleFlightOptions>({
  ttlMs: true,
  staleMs: true,
  markerMs: true,
  loadMaxMs: true,
  waitMs: true,
  afterWait: true,
  failedMs: true,
  eagerness: true,
  schemaVersion: true,
  bytesMax: true,
  keptMax: true,
})

export type CheckedOptions = Required<SingleFlightOptions>

const MINUTE_MS = 60_000
const MARKER_MIN_MS = 100
const BYTES_MAX = 16 * 1024 * 1024
const EAGERNESS_MAX = 100

export function checkOptions(given: unknown): CheckedOptions {
  const asked = optionsOf('options', given, OPTION_NAMES)
  const markerMs = durationMs('markerMs', asked.markerMs ?? 5_000, MARKER_MIN_MS, TIMER_MAX_MS)
  const loadMaxMs = asked.loadMaxMs ?? Math.max(MINUTE_MS, markerMs)
  const { ttlMs, staleMs, eagerness = 1 } = asked
  if (typeof eagerness !== 'number' || !(eagerness >= 0 && eagerness <= EAGERNESS_MAX)) {
    throw invalid('eagerness', `a number from 0 to ${EAGERNESS_MAX}`, show(eagerness))
  }
  return {
    ...checkTimes({ ttlMs, staleMs }, { ttlMs: MINUTE_MS, staleMs: MINUTE_MS }),
    markerMs,
    loadMaxMs: durationMs('loadMaxMs', loadMaxMs, markerMs, TIMER_MAX_MS),
    waitMs: durationMs('waitMs', asked.waitMs ?? 10_000, 0, TIMER_MAX_MS),
    afterWait: oneOf('afterWait', asked.afterWait ?? 'error', ['error', 'load']),
    failedMs: durationMs('failedMs', asked.failedMs ?? 1_000),
    eagerness,
    schemaVersion: integer('schemaVersion', asked.schemaVersion ?? 1, 1, 2 ** 31 - 1),
    bytesMax: integer('bytesMax', asked.bytesMax ?? 262_144, 1, BYTES_MAX),
    keptMax: integer('keptMax', asked.keptMax ?? 1_000, 1, 1_000_000),
  }
}

export function checkTimes(given: unknown, defaults: FlightTimes): FlightTimes {
  const { ttlMs = defaults.ttlMs, staleMs = defaults.staleMs } = optionsOf('options', given, TIME_NAMES)
  return { ttlMs: durationMs('ttlMs', ttlMs), staleMs: durationMs('staleMs', staleMs, 0) }
}
