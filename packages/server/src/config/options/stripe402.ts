import { STRIPE402 } from '../command-names.js'
import { option } from '../option.js'
import { boolean, plainText, redisUrl, url } from '../parsers.js'

/** The stripe402 store that is looked at: one of the two. */
export const STRIPE402_OPTIONS = {
  fromRedis: option<string>({
    flag: 'from-redis',
    variable: 'STRIPE402_REDIS_URL',
    hint: 'url',
    text: 'The Redis that stripe402 keeps its clients in: one server, redis+sentinel:// or redis+cluster://. Better in the environment when it holds a password: flags can be seen by others',
    commands: STRIPE402,
    secret: true,
    expected: 'a URL such as redis://127.0.0.1:6379 or rediss://user:password@host:6379/0',
    parse: redisUrl,
  }),
  fromPostgres: option<string>({
    flag: 'from-postgres',
    variable: 'STRIPE402_DATABASE_URL',
    hint: 'url',
    text: 'The Postgres that stripe402 keeps its clients in. Better in the environment when it holds a password: flags can be seen by others',
    commands: STRIPE402,
    secret: true,
    expected: 'a URL such as postgres://user:password@127.0.0.1:5432/database',
    parse: url('postgres:', 'postgresql:'),
  }),
  keyPrefix: option<string>({
    flag: 'key-prefix',
    hint: 'text',
    text: 'What stands before all keys of the store, where its client of ioredis was given a keyPrefix',
    commands: STRIPE402,
    needs: 'fromRedis',
    expected: '1 to 255 characters, none of them control characters',
    parse: plainText(255),
  }),
  taggedKeys: option<boolean>({
    flag: 'tagged',
    text: 'The store was made with tagged keys: stripe402:client:{<clientId>}',
    commands: STRIPE402,
    needs: 'fromRedis',
    expected: 'no value',
    parse: boolean,
  }),
  clientPrefix: option({
    flag: 'wallet-prefix',
    hint: 'text',
    text: 'What the ids of the wallets begin with, as the HoldfastStore that will use them has it',
    commands: ['stripe402 import'],
    default: 'stripe402:',
    expected: '1 to 64 characters, none of them control characters, not beginning with records:',
    parse: (text) => (text.startsWith('records:') ? undefined : plainText(64)(text)),
  }),
} as const
