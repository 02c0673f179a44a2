import { EVENT_NAMES, type EventName } from 'holdfast'
import { isScope, SCOPE_MEANINGS, SCOPES, type Scope } from '../access/scopes.js'

/**
 * The one table of what can be configured: flag, environment variable, default, what is allowed. Parsing, `--help` and
 * `docs/reference/configuration.md` come from here. A flag wins over the environment, the environment over the default.
 */
export type CommandName =
  | 'dev'
  | 'serve'
  | 'migrate'
  | 'audit'
  | 'rebuild'
  | 'reconcile'
  | 'doctor'
  | 'keys create'
  | 'keys list'
  | 'keys revoke'
  | 'webhooks create'
  | 'webhooks list'
  | 'webhooks delete'
  | 'webhooks dead'
  | 'webhooks replay'

export interface Option<T> {
  /** On the command line, without the dashes. */
  flag: string
  variable?: string
  /** What stands for the value in the help; a flag without it takes no value. */
  hint?: string
  /** Given by its place on the command line, without the flag. */
  argument?: boolean
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

const list =
  <T>(read: (text: string) => T | undefined) =>
  (text: string): readonly T[] | undefined => {
    const values = text.split(',').map((one) => read(one.trim()))
    return values.includes(undefined) ? undefined : ([...new Set(values)] as T[])
  }

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

const durationMs =
  (max: number) =>
  (text: string): number | undefined => {
    const match = /^(\d{1,9})([smhd])$/.exec(text)
    if (!match) return undefined
    const ms = Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS]
    return ms >= 1 && ms <= max ? ms : undefined
  }

/** Scheme, host and port, as browsers send it; `*` for any. */
const origin = (text: string): string | undefined =>
  text === '*' || (URL.canParse(text) && new URL(text).origin === text) ? text : undefined

/** Keeps each option's own type, so that `Config` below knows it. */
const option = <T>(definition: Option<T>): Option<T> => definition

const SERVERS = ['dev', 'serve'] as const
/** At work on both servers for a while, and then done. */
const TOOLS = ['audit', 'rebuild'] as const
/** Look at both servers, and end. */
const LOOKS = ['reconcile', 'doctor'] as const
const KEYS = ['keys create', 'keys list', 'keys revoke'] as const
const WEBHOOKS = ['webhooks create', 'webhooks list', 'webhooks delete', 'webhooks dead', 'webhooks replay'] as const
const ALL = ['dev', 'serve', 'migrate', ...TOOLS, ...LOOKS, ...KEYS, ...WEBHOOKS] as const

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
    required: ['serve', 'migrate', ...TOOLS, ...LOOKS, ...KEYS, ...WEBHOOKS],
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
  eventsKeepMs: option({
    flag: 'events-keep-ms',
    variable: 'HOLDFAST_EVENTS_KEEP_MS',
    hint: 'ms',
    text: 'How long events are kept: so long one may stay away and come back with Last-Event-ID. They are noted for so long after somebody last asked for any',
    commands: SERVERS,
    default: 604_800_000,
    expected: 'milliseconds from 172800000 to 7776000000',
    parse: integer(172_800_000, 7_776_000_000),
  }),
  eventsExpiringMs: option({
    flag: 'events-expiring-ms',
    variable: 'HOLDFAST_EVENTS_EXPIRING_MS',
    hint: 'ms',
    text: 'How long before it runs out a hold is told to be expiring. 0: it is not',
    commands: SERVERS,
    default: 60_000,
    expected: 'milliseconds from 1000 to 86400000, or 0',
    parse: (text) => (text === '0' ? 0 : integer(1_000, 86_400_000)(text)),
  }),
  webhookHosts: option<readonly string[]>({
    flag: 'webhook-hosts',
    variable: 'HOLDFAST_WEBHOOK_HOSTS',
    hint: 'list',
    text: 'Hosts that webhooks may be at although their addresses are not public, or without TLS, separated by commas; with a port only that one',
    commands: [...SERVERS, 'webhooks create'],
    defaultOf: { dev: ['localhost', '127.0.0.1', '[::1]'] },
    expected: 'hosts such as hooks.internal or localhost:8080',
    parse: list((text) => (/^(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(:\d{1,5})?$/.test(text) ? text : undefined)),
  }),
  webhookId: option<string>({
    flag: 'id',
    hint: 'id',
    argument: true,
    text: 'The webhook, by the id that webhooks list shows',
    commands: ['webhooks delete', 'webhooks dead', 'webhooks replay'],
    required: ['webhooks delete', 'webhooks dead', 'webhooks replay'],
    expected: 'the id of a webhook',
    parse: nonEmpty,
  }),
  webhookUrl: option<string>({
    flag: 'url',
    hint: 'url',
    text: 'Who is told, by POST',
    commands: ['webhooks create'],
    required: ['webhooks create'],
    expected: 'a URL such as https://example.com/holdfast',
    parse: nonEmpty,
  }),
  webhookEvents: option<readonly EventName[]>({
    flag: 'events',
    hint: 'list',
    text: `Which events, separated by commas: ${EVENT_NAMES.join(', ')}. Without it all`,
    commands: ['webhooks create'],
    expected: `some of ${EVENT_NAMES.join(', ')}`,
    parse: list((text) => EVENT_NAMES.find((name) => name === text)),
  }),
  balanceLow: option<number>({
    flag: 'balance-low',
    hint: 'amount',
    text: 'balance.low: when available falls below this. Without it never',
    commands: ['webhooks create'],
    expected: 'a whole number from 0 to 999999999999999',
    parse: integer(0, 999_999_999_999_999),
  }),
  corsOrigins: option<readonly string[]>({
    flag: 'cors-origins',
    variable: 'HOLDFAST_CORS_ORIGINS',
    hint: 'list',
    text: 'Pages that may call from a browser, by their origins, separated by commas; * for any. Without it none may',
    commands: SERVERS,
    expected: 'origins such as https://shop.example.com, or *',
    parse: list(origin),
  }),
  keyRate: option({
    flag: 'key-rate',
    variable: 'HOLDFAST_KEY_RATE',
    hint: 'number',
    text: 'Operations a second that a key may ask of this process, unless the key has a limit of its own. Twice as many may come at once',
    commands: SERVERS,
    default: 5_000,
    expected: 'a whole number from 1 to 1000000',
    parse: integer(1, 1_000_000),
  }),
  keyConcurrent: option({
    flag: 'key-concurrent',
    variable: 'HOLDFAST_KEY_CONCURRENT',
    hint: 'number',
    text: 'Requests of a key that this process answers at a time, unless the key has a limit of its own',
    commands: SERVERS,
    default: 1_000,
    expected: 'a whole number from 1 to 1000000',
    parse: integer(1, 1_000_000),
  }),
  bodyMaxBytes: option({
    flag: 'body-max-bytes',
    variable: 'HOLDFAST_BODY_MAX_BYTES',
    hint: 'bytes',
    text: 'The largest body of a request',
    commands: SERVERS,
    default: 262_144,
    expected: 'bytes from 1024 to 16777216',
    parse: integer(1_024, 16_777_216),
  }),
  keyId: option<string>({
    flag: 'id',
    hint: 'id',
    argument: true,
    text: 'The key to revoke, by the id that keys list shows',
    commands: ['keys revoke'],
    required: ['keys revoke'],
    expected: 'the id of a key',
    parse: nonEmpty,
  }),
  tenant: option<string>({
    flag: 'tenant',
    hint: 'name',
    text: 'Whose wallets the key or webhook is for; of a list: only those of this tenant',
    commands: ['keys create', 'keys list', 'webhooks create', 'webhooks list'],
    defaultOf: { 'keys create': 'default', 'webhooks create': 'default' },
    expected: '1 to 64 of a-z, 0-9, _ and -',
    parse: (text) => (/^[a-z0-9_-]{1,64}$/.test(text) ? text : undefined),
  }),
  keyName: option({
    flag: 'name',
    hint: 'text',
    text: 'What the key is for, for people who read the list',
    commands: ['keys create'],
    default: 'unnamed',
    expected: '1 to 100 characters, none of them control characters',
    parse: (text) => (/^\P{Cc}{1,100}$/u.test(text) ? text : undefined),
  }),
  scopes: option<readonly Scope[]>({
    flag: 'scopes',
    hint: 'list',
    text: `What it may do, separated by commas. ${SCOPES.map((scope) => `${scope}: ${SCOPE_MEANINGS[scope]}`).join('; ')}`,
    commands: ['keys create'],
    default: SCOPES,
    expected: `some of ${SCOPES.join(', ')}`,
    parse: list((text) => (isScope(text) ? text : undefined)),
  }),
  walletPrefix: option<string>({
    flag: 'wallet-prefix',
    hint: 'text',
    text: 'Only for wallets whose id begins with it',
    commands: ['keys create', 'webhooks create'],
    expected: '1 to 255 characters, none of them control characters',
    parse: (text) => (/^\P{Cc}{1,255}$/u.test(text) ? text : undefined),
  }),
  expiresInMs: option<number>({
    flag: 'expires-in',
    hint: 'duration',
    text: 'When it stops to work, from now. Without it: never',
    commands: ['keys create'],
    expected: 'a number with s, m, h or d, such as 90d, up to 3650d',
    parse: durationMs(3_650 * UNIT_MS.d),
  }),
  rate: option<number>({
    flag: 'rate',
    hint: 'number',
    text: 'Operations a second that it may ask of each server. Without it: what the server allows to any key',
    commands: ['keys create'],
    expected: 'a whole number from 1 to 1000000',
    parse: integer(1, 1_000_000),
  }),
  concurrent: option<number>({
    flag: 'concurrent',
    hint: 'number',
    text: 'Requests at a time that it may have at each server. Without it: what the server allows to any key',
    commands: ['keys create'],
    expected: 'a whole number from 1 to 1000000',
    parse: integer(1, 1_000_000),
  }),
  bodyBytes: option<number>({
    flag: 'body-bytes',
    hint: 'bytes',
    text: 'Its largest body, where that is to be less than what the server takes',
    commands: ['keys create'],
    expected: 'bytes from 1 to 16777216',
    parse: integer(1, 16_777_216),
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
} as const satisfies Record<
  string,
  | Option<never>
  | Option<string>
  | Option<number>
  | Option<boolean>
  | Option<readonly string[]>
  | Option<readonly Scope[]>
  | Option<readonly EventName[]>
>

export type OptionName = keyof typeof OPTIONS

type ValueOf<O> = O extends Option<infer T> ? T : never

/** Every option; those that a command does not have, or that have no default, are `undefined`. */
export type Config = { readonly [Name in OptionName]: ValueOf<(typeof OPTIONS)[Name]> | undefined }
