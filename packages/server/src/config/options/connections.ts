import { FLAGS, KEYS, LOOKS, ON_A_DATABASE, ON_A_SERVER, SERVERS, TOOLS, WEBHOOKS } from '../command-names.js'
import { option } from '../option.js'
import { boolean, integer, nonEmpty, redisUrl, url } from '../parsers.js'

/** Redis and Postgres. */
export const CONNECTIONS = {
  redisUrl: option<string>({
    flag: 'redis-url',
    variable: 'REDIS_URL',
    hint: 'url',
    text: 'The Redis to use: one server; with redis+sentinel:// the master of that name, by its sentinels; with redis+cluster:// a Cluster, by some of its nodes. rediss for TLS. Where the sentinels have a password of their own, ?sentinelPassword= names it. Better in the environment when it holds a password: flags can be seen by others',
    commands: [...SERVERS, ...TOOLS, ...LOOKS, ...FLAGS, 'stripe402 import'],
    required: ['serve', ...TOOLS, ...LOOKS, ...FLAGS, 'stripe402 import'],
    secret: true,
    expected:
      'a URL such as redis://127.0.0.1:6379, rediss://user:password@host:6379/0, redis+sentinel://host:26379,host:26379/master or redis+cluster://host:6379,host:6379',
    parse: redisUrl,
  }),
  databaseUrl: option<string>({
    flag: 'database-url',
    variable: 'DATABASE_URL',
    hint: 'url',
    text: 'The Postgres to use. Better in the environment when it holds a password: flags can be seen by others',
    commands: ON_A_DATABASE,
    required: ['serve', 'migrate', ...TOOLS, ...LOOKS, ...KEYS, ...WEBHOOKS, ...FLAGS, 'stripe402 import'],
    secret: true,
    expected: 'a URL such as postgres://user:password@127.0.0.1:5432/database',
    parse: url('postgres:', 'postgresql:'),
  }),
  schema: option({
    flag: 'schema',
    variable: 'HOLDFAST_SCHEMA',
    hint: 'name',
    text: 'The schema of the tables in Postgres',
    commands: ON_A_DATABASE,
    default: 'holdfast',
    expected: '1 to 63 of a-z, 0-9 and _, not public and not beginning with pg_',
    parse: (text) => (/^(?!pg_|public$|information_schema$)[a-z_][a-z0-9_]{0,62}$/.test(text) ? text : undefined),
  }),
  dataDir: option({
    flag: 'data-dir',
    variable: 'HOLDFAST_DATA_DIR',
    hint: 'folder',
    text: 'Where dev keeps its data: private Redis and Postgres, and its API key, which wallet commands take from there',
    commands: ['dev', ...ON_A_SERVER],
    default: '.holdfast',
    expected: 'a folder',
    parse: nonEmpty,
  }),
  migrate: option({
    flag: 'migrate',
    variable: 'HOLDFAST_MIGRATE',
    text: 'Bring the database to the version of this Holdfast before starting. Without it an older one is refused',
    commands: ['serve'],
    default: false,
    expected: 'true or false',
    parse: boolean,
  }),
  redisConnections: option({
    flag: 'redis-connections',
    variable: 'HOLDFAST_REDIS_CONNECTIONS',
    hint: 'number',
    text: 'Connections of this process to Redis (in a Cluster: to each node). One, pipelined, keeps Redis busy',
    commands: SERVERS,
    default: 1,
    expected: 'a whole number from 1 to 64',
    parse: integer(1, 64),
  }),
  databaseConnections: option({
    flag: 'database-connections',
    variable: 'HOLDFAST_DATABASE_CONNECTIONS',
    hint: 'number',
    text: 'The most connections of this process to Postgres',
    commands: [...SERVERS, 'doctor'],
    default: 10,
    expected: 'a whole number from 1 to 1000',
    parse: integer(1, 1000),
  }),
} as const
