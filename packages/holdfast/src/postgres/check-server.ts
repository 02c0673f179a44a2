import type { Postgres } from './pool.js'

/** One thing that was looked at. */
export interface ServerCheck {
  /** `danger`: an acknowledged operation can be lost, or nothing works. `warning`: it can in a case that may not be yours. */
  severity: 'ok' | 'warning' | 'danger'
  setting: string
  /** What was found, and what to do about it. */
  text: string
}

/** A check that is not fine. */
export interface ServerFinding extends ServerCheck {
  severity: 'warning' | 'danger'
}

export interface ServerState {
  version: number
  encoding: string
  in_recovery: boolean
  read_only: string
  isolation: string
  fsync: string
  full_page_writes: string
  synchronous_commit: string
  default_synchronous_commit: string
  standby_names: string
  replicas: number
  /** Null: may not be seen. */
  synchronous_replicas: number | null
  /** How many there may be at most, of this role to this database. */
  connections: number
  /** By how much the server's clock differs from ours, ms. */
  clockOffMs: number
  /** How many connections this process may open. */
  pool: number
}

/** Below 14 nothing is tested. */
const VERSION_MIN = 140_000
/** Beyond a minute Holdfast does not believe a server's clock any more; long before that holds run out at odd times. */
const CLOCK_OFF_MAX_MS = 10_000

/** Everything about this server on which the promise "acknowledged is kept" rests, fine or not. */
export async function inspectServer(postgres: Postgres): Promise<ServerCheck[]> {
  const asked = Date.now()
  const [state] = await postgres.query<Omit<ServerState, 'clockOffMs' | 'pool'> & { clock: string }>('checkServer', [])
  if (state === undefined) return []
  const clockOffMs = Math.round(Number(state.clock) - (asked + Date.now()) / 2)
  return judgeServer({ ...state, clockOffMs, pool: postgres.maxConnections })
}

/** What on this server endangers the promise. The caller decides: log, refuse, or know better. */
export async function checkServer(postgres: Postgres): Promise<ServerFinding[]> {
  return (await inspectServer(postgres)).filter(isFinding)
}

export const isFinding = (check: ServerCheck): check is ServerFinding => check.severity !== 'ok'

/** The judgement alone, over plain data: the worst that can be said about each. */
export function judgeServer(state: ServerState): ServerCheck[] {
  return JUDGES.map((judge) => judge(state))
}

type Judge = (state: ServerState) => ServerCheck

const ok = (setting: string, text: string): ServerCheck => ({ severity: 'ok', setting, text })
const warning = (setting: string, text: string): ServerCheck => ({ severity: 'warning', setting, text })
const danger = (setting: string, text: string): ServerCheck => ({ severity: 'danger', setting, text })

const JUDGES: readonly Judge[] = [
  ({ version }) => {
    const major = Math.floor(version / 10_000)
    if (version >= VERSION_MIN) return ok('server_version', `Postgres ${major}`)
    return danger('server_version', `Postgres ${major} is older than 14, the oldest tested`)
  },
  ({ encoding }) => {
    if (encoding === 'UTF8') return ok('server_encoding', encoding)
    return danger(
      'server_encoding',
      `The database is encoded in ${encoding}, which can't hold every key: expected UTF8`,
    )
  },
  ({ in_recovery, read_only }) => {
    if (in_recovery) {
      return danger('in_recovery', 'This server is a replica: it takes no writes. Connect to the primary')
    }
    if (read_only === 'on') {
      return danger(
        'read_only',
        'Transactions are read-only though Holdfast asks for others: look at what is in between',
      )
    }
    return ok('in_recovery', 'a primary, takes writes')
  },
  ({ isolation }) => {
    if (isolation === 'read committed') return ok('transaction_isolation', isolation)
    return danger('transaction_isolation', `Statements run as ${isolation} though Holdfast sets read committed`)
  },
  ({ fsync }) => {
    if (fsync !== 'off') return ok('fsync', fsync)
    return danger('fsync', 'fsync is off: a crash of the machine can lose or damage what was acknowledged')
  },
  ({ full_page_writes }) => {
    if (full_page_writes !== 'off') return ok('full_page_writes', full_page_writes)
    return danger('full_page_writes', 'full_page_writes is off: a crash of the machine can damage tables')
  },
  judgeCommit,
  judgeReplicas,
  ({ connections, pool }) => {
    if (connections >= 2 * pool)
      return ok('max_connections', `${connections}, of which this process opens up to ${pool}`)
    const room = `The server lets this role have ${connections} connections, and one process may open ${pool}`
    if (connections < pool) return danger('max_connections', `${room}: calls will fail for want of one`)
    return warning('max_connections', `${room}: there is no room for a second`)
  },
  ({ clockOffMs }) => {
    const off = `${Math.abs(clockOffMs / 1_000).toFixed(1)} s ${clockOffMs < 0 ? 'behind' : 'ahead of'} this machine's`
    if (Math.abs(clockOffMs) <= CLOCK_OFF_MAX_MS) return ok('clock', `Its clock is ${off}`)
    return warning('clock', `Its clock is ${off}: holds run out at odd times. Let both be kept by NTP`)
  },
]

function judgeCommit(state: ServerState): ServerCheck {
  const { synchronous_commit: own, default_synchronous_commit: byDefault, standby_names } = state
  if (own === 'off') {
    return danger(
      'synchronous_commit',
      "synchronous_commit is off though Holdfast sets it: a pooler in between drops the connection's settings. " +
        'Use settingsScope "transaction"',
    )
  }
  if (own === 'local' && standby_names !== '') {
    return warning('synchronous_commit', 'Commits do not wait for the synchronous replicas: a failover can lose some')
  }
  const others = byDefault === 'off' ? ', set by Holdfast; off for others of this server, database or role' : ''
  return ok('synchronous_commit', `${own}${others}`)
}

/** What a failover would lose. Replicas that follow the log in an archive can't be seen from here. */
function judgeReplicas({ replicas, standby_names, synchronous_replicas }: ServerState): ServerCheck {
  if (standby_names === '') {
    if (replicas === 0) return ok('synchronous_standby_names', 'no replicas')
    return warning(
      'synchronous_standby_names',
      'There are replicas and none is synchronous: a failover to one can lose acknowledged operations',
    )
  }
  if (synchronous_replicas === 0) {
    return warning(
      'synchronous_standby_names',
      `${standby_names}: none of them is connected, so every commit waits until one is`,
    )
  }
  return ok('synchronous_standby_names', standby_names)
}
