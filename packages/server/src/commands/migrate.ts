import { HoldfastError, migrate as migrateDatabase, Postgres } from 'holdfast'
import { StartError } from '../lifecycle/start-error.js'
import { EXIT, type Run } from './command.js'

export const migrate: Run = async ({ config, nameOf }, { print }) => {
  const postgres = new Postgres(config.databaseUrl as string, { schema: config.schema as string })
  try {
    const report = await migrateDatabase(postgres)
    if (config.json) {
      print(JSON.stringify(report))
      return EXIT.ok
    }
    for (const { version, name, durationMs } of report.applied) print(`applied ${version} ${name} in ${durationMs} ms`)
    print(`The schema ${report.schema} is at version ${report.to}${report.applied.length === 0 ? ' already' : ''}.`)
    return EXIT.ok
  } catch (error) {
    if (error instanceof HoldfastError) throw new StartError(`${nameOf('databaseUrl')}: ${error.message}`)
    throw error
  } finally {
    await postgres.close()
  }
}
