// The suite needs the real Redis server: faults, Sentinel and Cluster can't be shown on anything less.
import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { SetupError, say } from './setup.mjs'

const PACKAGE = 'redis-server'
const POLICY = '/usr/sbin/policy-rc.d'

/** Installs it from Debian's packages where that is allowed; otherwise says what to install. */
export function requireRealRedis() {
  if (isThere()) return
  if (process.getuid?.() !== 0 || !isOnPath('apt-get')) {
    throw new SetupError(
      'The tests need the real Redis server, version 7 or later: install redis-server or valkey-server (Debian: sudo apt-get install redis-server) and run npm test again.',
    )
  }
  say(`Installing ${PACKAGE} from Debian's packages…`)
  withoutStartingServices(() => {
    aptGet('update')
    aptGet('install', '--yes', '--no-install-recommends', PACKAGE)
  })
  if (!isThere()) throw new SetupError(`${PACKAGE} is installed, but is not on PATH (${process.env.PATH}).`)
}

const isThere = () => isOnPath('redis-server') || isOnPath('valkey-server')

function isOnPath(name) {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/** Debian starts a service as soon as it is installed, unless this script forbids it. */
function withoutStartingServices(work) {
  if (existsSync(POLICY)) return work()
  writeFileSync(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  try {
    return work()
  } finally {
    rmSync(POLICY, { force: true })
  }
}

function aptGet(...args) {
  const { status, stdout, stderr } = spawnSync('apt-get', ['-qq', ...args], {
    encoding: 'utf8',
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  })
  if (status === 0) return
  throw new SetupError(
    `${PACKAGE}, which the tests need, could not be installed (apt-get ${args[0]} failed):\n${`${stdout}${stderr}`.trim()}`,
  )
}
