import { checkServer, Postgres } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { emptyDatabase } from '../../../../test/servers.js'
import { judgeServer } from '../../src/postgres/check-server.js'

const SOUND = {
  version: 150_004,
  encoding: 'UTF8',
  in_recovery: false,
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  standby_names: '',
  replicas: 0,
}

describe('the judgement of a server', () => {
  it('finds nothing on a sound one', () => {
    expect(judgeServer(SOUND)).toEqual([])
    expect(judgeServer({ ...SOUND, replicas: 1, standby_names: 'a' })).toEqual([])
  })

  it.each([
    ['server_version', 'danger', { version: 130_020 }],
    ['server_encoding', 'danger', { encoding: 'LATIN1' }],
    ['in_recovery', 'danger', { in_recovery: true }],
    ['fsync', 'danger', { fsync: 'off' }],
    ['full_page_writes', 'danger', { full_page_writes: 'off' }],
    ['synchronous_commit', 'danger', { synchronous_commit: 'off' }],
    ['synchronous_commit', 'warning', { synchronous_commit: 'local', standby_names: 'a' }],
    ['synchronous_standby_names', 'warning', { replicas: 1 }],
  ])('finds %s as %s in %j', (setting, severity, state) => {
    expect(judgeServer({ ...SOUND, ...state })).toEqual([{ setting, severity, text: expect.stringMatching(/.{20}/) }])
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
