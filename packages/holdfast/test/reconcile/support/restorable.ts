import { execFileSync } from 'node:child_process'
import { appendFileSync, chmodSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type PostgresHandle, startPostgres } from '@holdfast/services'
import pg from 'pg'

/** A Postgres of its own whose data can be put back to how it was: by the ways in which that happens to people. */
export class RestorablePostgres {
  readonly server: PostgresHandle

  private constructor(server: PostgresHandle) {
    this.server = server
  }

  static async start(): Promise<RestorablePostgres> {
    return new RestorablePostgres(await startPostgres({ durable: false }))
  }

  get url(): string {
    return this.server.url
  }

  /** A crash: nothing is orderly about it. */
  async crash(): Promise<void> {
    await this.server.kill()
    await this.server.restart()
  }

  /** The files as they are after a crash: what a snapshot of the disk has. */
  async snapshot(): Promise<void> {
    await this.server.kill()
    this.#copy('data', 'snapshot')
    await this.server.restart()
  }

  /** The old files in place of the new ones: the same server, the same timeline, and no idea that anything is missing. */
  async putBack(): Promise<void> {
    await this.server.kill()
    this.#copy('snapshot', 'data')
    await this.server.restart()
  }

  /** A replica that has what the snapshot has, and takes over: another timeline. */
  async promote(from: 'snapshot' | 'data'): Promise<void> {
    await this.server.kill()
    if (from === 'snapshot') this.#copy('snapshot', 'data')
    this.#signal('standby.signal')
    await this.server.restart()
    await this.run('SELECT pg_promote()')
  }

  /** Recovery to a point in time, from a base backup and the log that was archived: another timeline. */
  async recover(): Promise<void> {
    await this.server.kill()
    this.#copy('snapshot', 'data')
    appendFileSync(join(this.server.folder, 'data', 'postgresql.auto.conf'), "restore_command = 'false'\n")
    this.#signal('recovery.signal')
    await this.server.restart()
    for (;;) {
      const [row] = await this.run('SELECT pg_is_in_recovery() AS recovering')
      if (!row?.recovering) return
    }
  }

  async run(sql: string, database?: string): Promise<Record<string, unknown>[]> {
    const url = new URL(this.url)
    if (database) url.pathname = `/${database}`
    const client = new pg.Client(url.href)
    await client.connect()
    try {
      return (await client.query(sql)).rows
    } finally {
      await client.end()
    }
  }

  async timeline(): Promise<string> {
    const [row] = await this.run('SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS timeline')
    return String(row?.timeline)
  }

  stop(): Promise<void> {
    return this.server.stop()
  }

  /** With owners: Postgres does not run on files of somebody else's. */
  #copy(from: string, to: string): void {
    rmSync(join(this.server.folder, to), { recursive: true, force: true })
    execFileSync('cp', ['-a', join(this.server.folder, from), join(this.server.folder, to)])
  }

  #signal(name: string): void {
    const path = join(this.server.folder, 'data', name)
    writeFileSync(path, '')
    chmodSync(path, 0o666)
  }
}
