import pg from 'pg'

const TABLES = ['settings', 'wallets', 'entries', 'checkpoints', 'transfers']

/** The data of a running database, kept aside and loaded again under connections that live on, as `pg_restore --data-only` would. */
export class Dump {
  readonly #url: string

  private constructor(url: string) {
    this.#url = url
  }

  static async take(url: string): Promise<Dump> {
    const dump = new Dump(url)
    await dump.#run(`DROP SCHEMA IF EXISTS kept CASCADE; CREATE SCHEMA kept;
      ${TABLES.map((table) => `CREATE TABLE kept.${table} AS SELECT * FROM holdfast.${table}`).join(';')}`)
    return dump
  }

  async load(): Promise<void> {
    await this.#run(`BEGIN; SET LOCAL session_replication_role = replica;
      ${TABLES.map((table) => `DELETE FROM holdfast.${table}; INSERT INTO holdfast.${table} SELECT * FROM kept.${table}`).join(';')};
      COMMIT`)
  }

  async #run(sql: string): Promise<void> {
    const client = new pg.Client(this.#url)
    await client.connect()
    try {
      await client.query(sql)
    } finally {
      await client.end()
    }
  }
}
