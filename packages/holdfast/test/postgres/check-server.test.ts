import { checkServer, Postgres } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { emptyDatabase } from '../../../../test/servers.js'
import { isFinding, judgeServer, type ServerState } from '../../src/postgres/check-server.js'

const SOUND: ServerState = {
  version: 150_004,
  encoding: 'UTF8',
  in_recovery: false,
  read_only: 'off',
  isolation: 'read committed',
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  default_synchronous_commit: 'on',
  standby_names: '',
  replicas: 0,
  synchronous_replicas: 0,
  connections: 97,
  clockOffMs: 20,
  pool: 10,
}

const findings = (state: Partial<ServerState>) => judgeServer({ ...SOUND, ...state }).filter(isFinding)

describe('the judgement of a server', () => {
  it('finds nothing on a sound one', () => {
    expect(findings({})).toEqual([])
    expect(findings({ replicas: 1, standby_names: 'a', synchronous_replicas: 1 })).toEqual([])
    // Who may not see what replicas are is not told that there are none.
    expect(findings({ replicas: 1, standby_names: 'a', synchronous_replicas: null })).toEqual([])
    // Ours are synchronous all the same.
    expect(findings({ default_synchronous_commit: 'off' })).toEqual([])
  })

  it.each([
    ['server_version', 'danger', { version: 130_020 }],
    ['server_encoding', 'danger', { encoding: 'LATIN1' }],
    ['in_recovery', 'danger', { in_recovery: true }],
    ['fsync', 'danger', { fsync: 'off' }],
    ['full_page_writes', 'danger', { full_page_writes: 'off' }],
    ['synchronous_commit', 'danger', { synchronous_commit: 'off' }],
    ['read_only', 'danger', { read_only: 'on' }],
    ['transaction_isolation', 'danger', { isolation: 'serializable' }],
    ['synchronous_commit', 'warning', { synchronous_commit: 'local', standby_names: 'a', synchronous_replicas: null }],
    ['synchronous_standby_names', 'warning', { standby_names: 'a', synchronous_replicas: 0 }],
    ['max_connections', 'danger', { connections: 9 }],
    ['max_connections', 'warning', { connections: 19 }],
    ['clock', 'warning', { clockOffMs: -11_000 }],
    ['synchronous_standby_names', 'warning', { replicas: 1 }],
  ])('finds %s as %s in %j', (setting, severity, state) => {
    expect(findings(state as Partial<ServerState>)).toEqual([
      { setting, severity, text: expect.stringMatching(/.{20}/) },
    ])
  })
})

describe('on a real server', () => {
  it('sees what the server was started with, and that our own commits are synchronous all the same', async () => {
    const postgres = new Postgres(await emptyDatabase())
    const findings = await checkServer(postgres)
    expect(findings.map(({ setting }) => setting)).toEqual(['fsync', 'full_page_writes'])
    await postgres.close()
  })
})
