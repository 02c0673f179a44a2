import { parseArgs } from 'node:util'
import { TOPOLOGIES, type Topology } from './places.js'

export const HELP = `npm run chaos -- [--minutes N] [--seed S] [--topology ${TOPOLOGIES.join('|')}] [--json FILE]

Starts real servers and a few real processes that use the library, and does them harm in an order that the seed decides: processes are
killed and stopped, Redis is flushed, restarted from an old file, failed over, cut off and taken away, Postgres crashes. After every
round of about a minute all heals, and what callers saw is compared with the journal, one operation after the other.

--minutes N   how long harm is done, in all; parts are fine (default 2)
--seed S      another order of faults and another load (default 1); what processes and servers make of it differs each time
--topology T  what kind of Redis (default single)
--json FILE   the result as a file
Exit code 1 when a promise was broken, 2 when the arguments are not understood.`

export interface Arguments {
  readonly minutes: number
  readonly seed: number
  readonly topology: Topology
  readonly json: string | undefined
}

/** For the person at the terminal: the message is all that is printed. */
export class BadArguments extends Error {}

export function readArguments(args: string[]): Arguments | 'help' {
  let values: Record<string, string | boolean | undefined>
  try {
    values = parseArgs({
      args,
      options: {
        minutes: { type: 'string', default: '2' },
        seed: { type: 'string', default: '1' },
        topology: { type: 'string', default: 'single' },
        json: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    }).values
  } catch (error) {
    throw new BadArguments((error as Error).message)
  }
  if (values.help) return 'help'
  const minutes = Number(values.minutes)
  if (!(minutes > 0 && minutes <= 1_440))
    throw new BadArguments(`--minutes: expected a number up to 1440, got ${values.minutes}`)
  const seed = Number(values.seed)
  if (!Number.isSafeInteger(seed) || seed < 0)
    throw new BadArguments(`--seed: expected an integer from 0, got ${values.seed}`)
  const topology = TOPOLOGIES.find((name) => name === values.topology)
  if (!topology) throw new BadArguments(`--topology: expected ${TOPOLOGIES.join(', ')}, got ${values.topology}`)
  return { minutes, seed, topology, json: values.json as string | undefined }
}
