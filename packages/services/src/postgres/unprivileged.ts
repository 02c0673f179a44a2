/**
 * Postgres refuses to run as root. Started by root it runs as the user nobody, who must then be able to reach its
 * folders: under a folder that only root may enter (root's home, `mktemp -d`) two other ways remain.
 *
 * | way                     | needs                                                              | folder belongs to |
 * |-------------------------|--------------------------------------------------------------------|-------------------|
 * | uid and gid of nobody   | folders that everybody may pass through                            | nobody            |
 * | a user namespace        | a kernel that allows them; most containers don't                   | root              |
 * | nobody, plus the one capability to pass through folders | setpriv; containers' default rights are enough | nobody |
 *
 * It also refuses users without a name (a container run with a made-up uid): in a user namespace they have nobody's.
 */
import { spawnSync } from 'node:child_process'
import { chownSync, lchownSync, readdirSync, statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { ServicesError } from '../error.js'
import type { Command } from '../server-process.js'

const NOBODY = 65534

const USER_NAMESPACE = ['unshare', '--user', `--map-user=${NOBODY}`, `--map-group=${NOBODY}`]
const PASS_THROUGH = [
  'setpriv',
  `--reuid=${NOBODY}`,
  `--regid=${NOBODY}`,
  '--clear-groups',
  '--bounding-set=-all,+dac_override',
  '--inh-caps=-all,+dac_override',
  '--ambient-caps=+dac_override',
  // Without this, access(2) answers as if the capability were not there, and Postgres asks it about its own binary.
  '--securebits=+no_setuid_fixup',
]

export interface Unprivileged {
  /** The same command, run so that Postgres accepts it. */
  wrap(command: Command): Command
  /** Gives the folder to the user that Postgres will see itself as. */
  own(folder: string): void
}

/** @param folders everything that Postgres must reach: its binaries and the folder that its data folder is in. */
export function unprivileged(folders: readonly string[]): Unprivileged {
  if (process.getuid?.() !== 0) return { wrap: hasName() ? (command) => command : named(), own: checkOwner }
  const nobody = { own: (folder: string) => chownAll(folder, NOBODY) }
  if (folders.every(everybodyReaches)) {
    return { ...nobody, wrap: (command) => ({ ...command, uid: NOBODY, gid: NOBODY }) }
  }
  if (runs(USER_NAMESPACE)) return { wrap: prefixed(USER_NAMESPACE), own: (folder) => chownAll(folder, 0) }
  if (runs(PASS_THROUGH)) return { ...nobody, wrap: prefixed(PASS_THROUGH) }
  const closed = folders.find((folder) => !everybodyReaches(folder))
  throw new ServicesError(
    `Postgres can't run as root, and other users can't reach ${closed}. Run as an ordinary user, use a folder that others may enter, or set DATABASE_URL.`,
  )
}

function hasName(): boolean {
  try {
    return userInfo().username !== ''
  } catch {
    return false
  }
}

function named(): (command: Command) => Command {
  if (runs(USER_NAMESPACE)) return prefixed(USER_NAMESPACE)
  throw new ServicesError(
    `Postgres can't set up its data for a user without a name, and uid ${process.getuid?.()} has none in /etc/passwd. Run as a user that has one, or set DATABASE_URL.`,
  )
}

/** Postgres would say so too, but in its log. */
function checkOwner(folder: string): void {
  const { uid } = statSync(folder)
  if (uid === process.getuid?.()) return
  throw new ServicesError(
    `The data in ${folder} belongs to another user (uid ${uid}), probably since an earlier run as root. Run as that user, or move the folder away to start afresh.`,
  )
}

function everybodyReaches(folder: string): boolean {
  for (let path = folder; ; path = dirname(path)) {
    if ((statSync(path).mode & 0o001) === 0) return false
    if (path === dirname(path)) return true
  }
}

function prefixed(prefix: readonly string[]): (command: Command) => Command {
  const [file = '', ...args] = prefix
  return (command) => ({ ...command, file, args: [...args, command.file, ...command.args] })
}

function runs(prefix: readonly string[]): boolean {
  const { file, args } = prefixed(prefix)({ file: 'true', args: [] })
  return spawnSync(file, args, { stdio: 'ignore' }).status === 0
}

function chownAll(folder: string, id: number): void {
  const { uid } = statSync(folder)
  if (uid === id) return
  for (const entry of readdirSync(folder, { recursive: true, encoding: 'utf8' }))
    lchownSync(join(folder, entry), id, id)
  // Last, so that a run that was cut short is done again.
  chownSync(folder, id, id)
}
