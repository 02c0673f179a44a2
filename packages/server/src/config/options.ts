/**
 * The one table of what can be configured: flag, environment variable, default, what is allowed. Parsing, `--help` and
 * `docs/reference/configuration.md` come from here. A flag wins over the environment, the environment over the default.
 */
export type CommandName = 'dev' | 'serve' | 'migrate' | 'audit' | 'rebuild' | 'reconcile' | 'doctor'

export interface Option<T> {
  /** On the command line, without the dashes. */
  flag: string
  variable?: string
  /** What stands for the value in the help; a flag without it takes no value. */
  hint?: string
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

const integer =
  (min: number, max: number) =>
  (text: string): number | undefined => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    return value >= min && value <= max ? value : undefined
  }

const oneOf =
  <T extends string>(...values: readonly T[]) =>
  (text: string): T | undefined =>
    values.find((value) => value === text)

const boolean = (text: string): boolean | undefined =>
  ({ true: true, '1': true, false: false, '0': false })[text.toLowerCase()]

const url =
  (...protocols: readonly string[]) =>
  (text: string): string | undefined =>
    URL.canParse(text) && protocols.includes(new URL(text).protocol) ? text : undefined

/** Several hosts are no URL to Node; the library reads them, and says what is wrong with them. */
const SEVERAL_REDIS = /^rediss?\+(sentinel|cluster):\/\/./
const redisUrl = (text: string): string | undefined =>
  SEVERAL_REDIS.test(text) ? text : url('redis:', 'rediss:')(text)

const nonEmpty = (text: string): string | undefined => (text.length > 0 ? text : undefined)

/** Keeps each option's own type, so that `Config` below knows it. */
const option = <T>(definition: Option<T>): Option<T> => definition

const SERVERS = ['dev', 'serve'] as const
/** At work on both servers for a while, and then done. */
const TOOLS = ['audit', 'rebuild'] as const
/** Look at both servers, and end. */
const LOOKS = ['reconcile', 'doctor'] as const
const ALL = ['dev', 'serve', 'migrate', ...TOOLS, ...LOOKS] as const

const SHARDS_MAX = 16_384

export const OPTIONS = {
  port: option({
    flag: 'port',
    variable: 'HOLDFAST_PORT',
    hint: 'number',
    text: 'Where the server listens. 0 takes any free port',
    commands: SERVERS,
    default: 4020,
    expected: 'a port from 0 to 65535',
    parse: integer(0, 65_535),
  }),
  host: option({
    flag: 'host',
    variable: 'HOLDFAST_HOST',
    hint: 'address',
    text: 'The address to listen on. 0.0.0.0 lets other machines in',
    commands: SERVERS,
    default: '127.0.0.1',
    expected: 'an address or a host name of this machine',
    parse: nonEmpty,
  }),
  redisUrl: option<string>({
    flag: 'redis-url',
    variable: 'REDIS_URL',
    hint: 'url',
    text: 'The Redis to use: one server; with redis+sentinel:// the master of that name, by its sentinels; with redis+cluster:// a Cluster, by some of its nodes. rediss for TLS. Where the sentinels have a password of their own, ?sentinelPassword= names it. Better in the environment when it holds a password: flags can be seen by others',
    commands: [...SERVERS, ...TOOLS, ...LOOKS],
    required: ['serve', ...TOOLS, ...LOOKS],
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
    commands: ALL,
    required: ['serve', 'migrate', ...TOOLS, ...LOOKS],
    secret: true,
    expected: 'a URL such as postgres://user:password@127.0.0.1:5432/database',
    parse: url('postgres:', 'postgresql:'),
  }),
  schema: option({
    flag: 'schema',
    variable: 'HOLDFAST_SCHEMA',
    hint: 'name',
    text: 'The schema of the tables in Postgres',
    commands: ALL,
    default: 'holdfast',
    expected: '1 to 63 of a-z, 0-9 and _, not public and not beginning with pg_',
    parse: (text) => (/^(?!pg_|public$|information_schema$)[a-z_][a-z0-9_]{0,62}$/.test(text) ? text : undefined),
  }),
  dataDir: option({
    flag: 'data-dir',
    variable: 'HOLDFAST_DATA_DIR',
    hint: 'folder',
    text: 'Where the private Redis and Postgres keep their data',
    commands: ['dev'],
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
  auditIntervalMs: option({
    flag: 'audit-interval-ms',
    variable: 'HOLDFAST_AUDIT_INTERVAL_MS',
    hint: 'ms',
    text: 'How often each shard is audited, by whichever process. 0: not in the background',
    commands: SERVERS,
    default: 300_000,
    expected: 'milliseconds from 1000 to 604800000, or 0',
    parse: (text) => (text === '0' ? 0 : integer(1_000, 604_800_000)(text)),
  }),
  auditRepair: option({
    flag: 'audit-repair',
    variable: 'HOLDFAST_AUDIT_REPAIR',
    hint: 'boolean',
    text: 'Whether an audit in the background puts right what the journal decides, or only tells of it',
    commands: SERVERS,
    default: true,
    expected: 'true or false',
    parse: boolean,
  }),
  auditWebhookUrl: option<string>({
    flag: 'audit-webhook-url',
    variable: 'HOLDFAST_AUDIT_WEBHOOK_URL',
    hint: 'url',
    text: 'Who is told of what audits in the background find, by POST',
    commands: SERVERS,
    needs: 'auditWebhookSecret',
    secret: true,
    expected: 'a URL such as https://alerts.example.com/holdfast',
    parse: url('http:', 'https:'),
  }),
  auditWebhookSecret: option<string>({
    flag: 'audit-webhook-secret',
    variable: 'HOLDFAST_AUDIT_WEBHOOK_SECRET',
    hint: 'secret',
    text: 'Signs what the webhook is told. Better in the environment: flags can be seen by others',
    commands: SERVERS,
    needs: 'auditWebhookUrl',
    secret: true,
    expected: 'at least 16 characters',
    parse: (text) => (text.length >= 16 ? text : undefined),
  }),
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
    text: 'Which wallets: every one. Those that nobody uses leave Redis again after ten minutes',
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
    commands: ['reconcile'],
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
  healthTimeoutMs: option({
    flag: 'health-timeout-ms',
    variable: 'HOLDFAST_HEALTH_TIMEOUT_MS',
    hint: 'ms',
    text: 'How long GET /health/ready waits for Redis and Postgres before it says they are away',
    commands: SERVERS,
    default: 1_000,
    expected: 'milliseconds from 10 to 60000',
    parse: integer(10, 60_000),
  }),
  shutdownTimeoutMs: option({
    flag: 'shutdown-timeout-ms',
    variable: 'HOLDFAST_SHUTDOWN_TIMEOUT_MS',
    hint: 'ms',
    text: 'How long a stop waits for requests in flight before it cuts them',
    commands: SERVERS,
    default: 10_000,
    expected: 'milliseconds from 0 to 600000',
    parse: integer(0, 600_000),
  }),
  logLevel: option({
    flag: 'log-level',
    variable: 'HOLDFAST_LOG_LEVEL',
    hint: 'level',
    text: 'The least important lines to log, as JSON on standard error',
    commands: SERVERS,
    default: 'info',
    defaultOf: { dev: 'warn' },
    expected: 'one of trace, debug, info, warn, error, silent',
    parse: oneOf('trace', 'debug', 'info', 'warn', 'error', 'silent'),
  }),
  json: option({
    flag: 'json',
    text: 'Answer on standard output with one line of JSON',
    commands: ALL,
    default: false,
    expected: 'no value',
    parse: boolean,
  }),
} as const satisfies Record<string, Option<never> | Option<string> | Option<number> | Option<boolean>>

export type OptionName = keyof typeof OPTIONS

type ValueOf<O> = O extends Option<infer T> ? T : never

/** Every option; those that a command does not have, or that have no default, are `undefined`. */
export type Config = { readonly [Name in OptionName]: ValueOf<(typeof OPTIONS)[Name]> | undefined }
