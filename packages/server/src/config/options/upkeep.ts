import { TOOLS } from '../command-names.js'
import { option } from '../option.js'
import { boolean, integer, nonEmpty } from '../parsers.js'

const SHARDS_MAX = 16_384

/** What an operator runs by hand: audit, rebuild, reconcile, doctor. */
export const UPKEEP = {
  shard: option<number>({
    flag: 'shard',
    hint: 'number',
    text: 'Only this shard',
    commands: TOOLS,
    expected: `a shard, from 0 to ${SHARDS_MAX - 1}`,
    parse: integer(0, SHARDS_MAX - 1),
  }),
  noRepair: option({
    flag: 'no-repair',
    text: 'Only tell what is found. Without it what the journal decides is put right',
    commands: ['audit'],
    default: false,
    expected: 'no value',
    parse: boolean,
  }),
  full: option({
    flag: 'full',
    text: 'Read every journal from the beginning, also what was verified before',
    commands: ['audit'],
    default: false,
    expected: 'no value',
    parse: boolean,
  }),
  usedWithinMs: option({
    flag: 'used-within-ms',
    hint: 'ms',
    text: 'Which wallets: those that were used within this time, and all with open holds',
    commands: ['rebuild'],
    default: 3_600_000,
    expected: 'milliseconds from 0 to 34560000000',
    parse: integer(0, 34_560_000_000),
  }),
  all: option({
    flag: 'all',
    text: 'Which wallets: every one. They leave Redis again after ten minutes in which they are not used',
    commands: ['rebuild'],
    default: false,
    expected: 'no value',
    parse: boolean,
  }),
  force: option({
    flag: 'force',
    text: 'Also wallets that Redis has. Without it those are left as they are',
    commands: ['rebuild'],
    default: false,
    expected: 'no value',
    parse: boolean,
  }),
  dryRun: option({
    flag: 'dry-run',
    text: 'Look, and change nothing',
    commands: ['reconcile', 'stripe402 import'],
    default: false,
    expected: 'no value',
    parse: boolean,
  }),
  yes: option({
    flag: 'yes',
    text: 'Go on from what Postgres has. Without it nothing is changed',
    commands: ['reconcile'],
    default: false,
    expected: 'no value',
    parse: boolean,
  }),
  export: option<string>({
    flag: 'export',
    hint: 'file',
    text: 'Where to write the entries that Redis has and Postgres lacks, a line of JSON each. With --yes, and not given, a new file in this folder',
    commands: ['reconcile'],
    expected: 'a file that is not there yet',
    parse: nonEmpty,
  }),
  memory: option({
    flag: 'memory',
    text: 'Look at Redis as one from which operations are acknowledged (durability memory)',
    commands: ['doctor'],
    default: false,
    expected: 'no value',
    parse: boolean,
  }),
} as const
