import type { Postgres } from './pool.js'

export interface ServerFinding {
  /** `danger`: an acknowledged operation can be lost, or nothing works. `warning`: it can in a case that may not be yours. */
  severity: 'danger' | 'warning'
  setting: string
  text: string
}

interface ServerState {
  version: number
  encoding: string
  in_recovery: boolean
  fsync: string
  full_page_writes: string
  synchronous_commit: string
  standby_names: string
  replicas: number
}

/** Below 14 nothing is tested. */
const VERSION_MIN = 140_000

/** What on this server endangers the promise "acknowledged is kept". The caller decides: log, refuse, or know better. */
export async function checkServer(postgres: Postgres): Promise<ServerFinding[]> {
  const [state] = await postgres.query<ServerState & { version: number }>('checkServer', [])
  return state === undefined ? [] : judgeServer(state)
}

/** The judgement alone, over plain data. */
export function judgeServer(state: ServerState): ServerFinding[] {
  const findings: ServerFinding[] = []
  const find = (severity: ServerFinding['severity'], setting: string, text: string) =>
    findings.push({ severity, setting, text })

  if (state.version < VERSION_MIN) {
    find(
      'danger',
      'server_version',
      `Postgres ${Math.floor(state.version / 10_000)} is older than 14, the oldest tested`,
    )
  }
  if (state.encoding !== 'UTF8') {
    find(
      'danger',
      'server_encoding',
      `The database is encoded in ${state.encoding}, which can't hold every key: expected UTF8`,
    )
  }
  if (state.in_recovery) {
    find('danger', 'in_recovery', 'This server is a replica: it takes no writes. Connect to the primary')
  }
  if (state.fsync === 'off') {
    find('danger', 'fsync', 'fsync is off: a crash of the machine can lose or damage what was acknowledged')
  }
  if (state.full_page_writes === 'off') {
    find('danger', 'full_page_writes', 'full_page_writes is off: a crash of the machine can damage tables')
  }
  if (state.synchronous_commit === 'off') {
    find(
      'danger',
      'synchronous_commit',
      "synchronous_commit is off though Holdfast sets it: a pooler in between drops the connection's settings. " +
        'Use settingsScope "transaction"',
    )
  }
  if (state.replicas > 0 && state.standby_names === '') {
    find(
      'warning',
      'synchronous_standby_names',
      'There are replicas and none is synchronous: a failover to one can lose acknowledged operations',
    )
  }
  if (state.standby_names !== '' && state.synchronous_commit === 'local') {
    find('warning', 'synchronous_commit', 'Commits do not wait for the synchronous replicas: a failover can lose some')
  }
  return findings
}
