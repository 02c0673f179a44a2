import { SERVERS } from '../command-names.js'
import { option } from '../option.js'
import { integer } from '../parsers.js'

/** What the server does for primitives. */
export const PRIMITIVES = {
  keySampleMs: option({
    flag: 'key-sample-ms',
    variable: 'HOLDFAST_KEY_SAMPLE_MS',
    hint: 'ms',
    text: 'How long the walk that counts the keys of primitives in Redis rests between its steps of 5,000 keys. One server is enough for a Redis. 0: no walk',
    commands: SERVERS,
    default: 10_000,
    expected: 'milliseconds from 100 to 3600000, or 0',
    parse: (text) => (text === '0' ? 0 : integer(100, 3_600_000)(text)),
  }),
} as const
