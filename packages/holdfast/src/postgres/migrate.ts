/**
 * Numbered migrations, each applied once, each in a transaction of its own.
 *
 * How SQL files name their tables: **bare**. The search path of every transaction of Holdfast is its schema alone (behind it
 * only pg_catalog and pg_temp), here and at run time, so `CREATE TABLE wallets` lands in the schema and
 * `SELECT … FROM wallets` finds it, whatever the schema is called. A **function** must carry the path with it, for callers that
 * have another one: end its header with `SET search_path FROM CURRENT`, which fixes the path that the migration runs under.
 *
 * Two processes at once: every step takes the same advisory lock first and then looks again at what is there, so the second
 * waits and finds its work done. The lock belongs to the transaction: it can't outlive a crash, and poolers don't mind it.
 */
import { HoldfastError } from '../errors/index.js'
import { MIGRATIONS } from './migrations.generated.js'
import type { Postgres, Transaction } from './pool.js'

export interface Migration {
  version: number
  name: string
  sql: string
}

export interface MigrationReport {
  schema: string
  /** The version before; 0 for an empty database. */
  from: number
  to: number
  applied: { version: number; name: string; durationMs: number }[]
}

export interface MigrateOptions {
  /** Default: the migrations of this version of Holdfast. */
  migrations?: readonly Migration[]
}

/** As long as a migration of a large table may take while another process waits for its turn. */
const LOCK_TIMEOUT_MS = 10 * 60 * 1000

/** Brings the schema to the version of this code. Run again, it changes nothing. */
export async function migrate(
  postgres: Postgres,
  { migrations = MIGRATIONS }: MigrateOptions = {},
): Promise<MigrationReport> {
  const applied: MigrationReport['applied'] = []
  const before = await versionsOf(postgres)
  checkVersions(postgres, migrations, before)
  for (const migration of migrations.slice(before.length)) {
    const started = performance.now()
    if (!(await applyNext(postgres, migrations, migration))) continue
    const durationMs = Math.round(performance.now() - started)
    applied.push({ version: migration.version, name: migration.name, durationMs })
    postgres.telemetry?.log?.('info', 'postgres_migrated', { schema: postgres.schema, ...applied.at(-1) })
  }
  return { schema: postgres.schema, from: before.length, to: migrations.length, applied }
}

/** Throws unless the schema has exactly the migrations of this code: for a server that must not change the database itself. */
export async function checkMigrated(postgres: Postgres): Promise<void> {
  const versions = await versionsOf(postgres)
  checkVersions(postgres, MIGRATIONS, versions)
  if (versions.length === MIGRATIONS.length) return
  throw new HoldfastError(
    'incompatible',
    `The schema ${postgres.schema} is at version ${versions.length}, this Holdfast needs ${MIGRATIONS.length}: run the command "holdfast migrate"`,
    { version: versions.length, needed: MIGRATIONS.length },
  )
}

/** False when another process applied it in the meantime. */
async function applyNext(postgres: Postgres, migrations: readonly Migration[], next: Migration): Promise<boolean> {
  const { schema } = postgres
  return postgres.transaction(
    async (tx) => {
      await tx.execute(
        'migrate_lock',
        `SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS};
         SELECT pg_advisory_xact_lock(hashtextextended('holdfast migrations of ${schema}', 0))`,
      )
      // CREATE SCHEMA asks for rights on the database even where the schema is there: look first.
      const [found] = await tx.execute<{ there: boolean }>(
        'migrate_look',
        `SELECT to_regnamespace('${schema}') IS NOT NULL AS there`,
      )
      if (!found?.there) await tx.execute('migrate_schema', `CREATE SCHEMA ${schema}`)
      const versions = await readVersions(tx, schema)
      checkVersions(postgres, migrations, versions)
      if (versions.length >= next.version) return false
      // The row first: what fails takes it back, and two that both got here would collide before they changed anything.
      await tx.execute(
        'migrate_version',
        `CREATE TABLE IF NOT EXISTS migrations (
           version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());
         INSERT INTO migrations (version, name) VALUES (${next.version}, '${next.name}')`,
      )
      await tx.execute('migrate_apply', next.sql)
      return true
    },
    { answerTimeoutMs: 0 },
  )
}

interface AppliedVersion {
  version: number
  name: string
}

const versionsOf = (postgres: Postgres) => postgres.transaction((tx) => readVersions(tx, postgres.schema))

async function readVersions(tx: Transaction, schema: string): Promise<AppliedVersion[]> {
  const [table] = await tx.execute<{ there: boolean }>(
    'migrate_look',
    `SELECT to_regclass('${schema}.migrations') IS NOT NULL AS there`,
  )
  if (!table?.there) return []
  return tx.execute<AppliedVersion>('migrate_versions', 'SELECT version, name FROM migrations ORDER BY version')
}

/** The database may be behind the code, never ahead of it or of another origin. */
function checkVersions(postgres: Postgres, migrations: readonly Migration[], versions: AppliedVersion[]): void {
  const { schema } = postgres
  if (versions.length > migrations.length) {
    throw new HoldfastError(
      'incompatible',
      `The schema ${schema} is at version ${versions.length}, newer than the ${migrations.length} that this Holdfast knows: run a newer Holdfast`,
      { version: versions.length, known: migrations.length },
    )
  }
  for (const [index, { version, name }] of versions.entries()) {
    const known = migrations[index]
    if (known?.version === version && known.name === name) continue
    throw new HoldfastError(
      'incompatible',
      `The schema ${schema} holds migration ${version} "${name}" where this Holdfast has ${known?.version} "${known?.name}": it was made by something else`,
      { version, name },
    )
  }
}
