import type { RedisConnection } from './connection.js'

/** One thing that was looked at. */
export interface RedisCheck {
  /** `danger`: an acknowledged operation can be lost, or nothing works. `warning`: it can in a case that may not be yours. */
  severity: 'ok' | 'warning' | 'danger'
  setting: string
  /** What was found, and what to do about it. */
  text: string
}

export interface RedisState {
  /** `redis_version`, or that of a Valkey in front of it. */
  version: string
  role: string
  policy: string
  /** Bytes; 0 for no limit. */
  maxMemory: number
  appendOnly: boolean
  /** When snapshots are written; null: the server does not let us see. */
  save: string | null
}

/** Whether anything is acknowledged from memory: then Redis is all that keeps it, for a moment. */
export interface RedisUse {
  memory: boolean
}

/** The scripts ask the server for several sections of INFO at once (lua/wallet/server.lua): before 7.0 that is an error. */
const VERSION_MIN = [7, 0] as const

/** Everything about this Redis on which a promise rests, fine or not; with Cluster, of the node for which it is worst. */
export async function inspectRedis(redis: RedisConnection, use: RedisUse): Promise<RedisCheck[]> {
  const ranks = { ok: 0, warning: 1, danger: 2 }
  const worst = new Map<string, RedisCheck>()
  const note = (check: RedisCheck): void => {
    const known = worst.get(check.setting)
    if (!known || ranks[check.severity] > ranks[known.severity]) worst.set(check.setting, check)
  }
  const nodes = await redis.describe()
  const isMute = nodes.some(({ info }) => info === null)
  note(judgeRights(isMute ? 'INFO is refused' : await redis.forbidden()))
  for (const { info, save } of nodes) {
    if (info !== null) judgeRedis(readState(info, save), use).forEach(note)
  }
  return [...worst.values()]
}

function judgeRights(forbidden: string | null): RedisCheck {
  const setting = 'rights'
  if (forbidden === null) return { severity: 'ok', setting, text: 'all that scripts do is allowed' }
  return {
    severity: 'danger',
    setting,
    text: `This user of Redis lacks a right that the scripts need, so that everything runs on the Postgres path (docs/operating/deployment.md lists them all): ${forbidden}`,
  }
}

export function readState(info: string, save: string | null): RedisState {
  const fields = new Map(info.split('\r\n').map((line) => line.split(/:(.*)/s) as [string, string]))
  return {
    version: fields.get('redis_version') ?? '',
    role: fields.get('role') ?? '',
    policy: fields.get('maxmemory_policy') ?? '',
    maxMemory: Number(fields.get('maxmemory') ?? 0),
    appendOnly: fields.get('aof_enabled') === '1',
    save,
  }
}

/** The judgement alone, over plain data. */
export function judgeRedis(state: RedisState, use: RedisUse): RedisCheck[] {
  return [judgeVersion(state), judgeRole(state), judgeEviction(state, use), judgePersistence(state, use)]
}

function judgeVersion({ version }: RedisState): RedisCheck {
  const setting = 'redis_version'
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const runs = major > VERSION_MIN[0] || (major === VERSION_MIN[0] && minor >= VERSION_MIN[1])
  if (runs) return { severity: 'ok', setting, text: version }
  return {
    severity: 'danger',
    setting,
    text: `Redis ${version} is older than ${VERSION_MIN.join('.')}, the oldest that runs the scripts`,
  }
}

function judgeRole({ role }: RedisState): RedisCheck {
  const setting = 'role'
  if (role === 'master') return { severity: 'ok', setting, text: 'a master' }
  return {
    severity: 'danger',
    setting,
    text: 'This Redis is a replica: it decides nothing, and everything runs on the Postgres path. Connect to the master',
  }
}

function judgeEviction({ policy, maxMemory }: RedisState, { memory }: RedisUse): RedisCheck {
  const setting = 'maxmemory_policy'
  const limited = maxMemory > 0 ? `${Math.round(maxMemory / 1_000_000)} MB` : 'no limit'
  if (policy === 'noeviction' || policy === '') return { severity: 'ok', setting, text: `noeviction, ${limited}` }
  if (policy.startsWith('volatile')) {
    return {
      severity: 'warning',
      setting,
      text: `${policy} (${limited}) evicts locks of wallets while they are held: expected noeviction`,
    }
  }
  if (!memory) {
    return {
      severity: 'warning',
      setting,
      text: `${policy} (${limited}) evicts wallets: nothing is lost, but they are loaded again and again. Expected noeviction`,
    }
  }
  return {
    severity: 'danger',
    setting,
    text: `${policy} (${limited}) evicts wallets with what was acknowledged from memory: expected noeviction`,
  }
}

function judgePersistence({ appendOnly, save }: RedisState, { memory }: RedisUse): RedisCheck {
  const setting = 'persistence'
  if (appendOnly) return { severity: 'ok', setting, text: 'append-only file' }
  const snapshots =
    save === null ? 'what snapshots are written is not shown' : save === '' ? 'none' : `snapshots: ${save}`
  if (!memory) return { severity: 'ok', setting, text: `${snapshots} (the journal is in Postgres: none is needed)` }
  return {
    severity: 'warning',
    setting,
    text: `${snapshots}, no append-only file: a restart of Redis loses what was acknowledged from memory and not appended yet`,
  }
}
