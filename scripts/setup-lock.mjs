// Two commands started at once in a fresh clone must not install into the same folder: the second waits for the first.
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, isAlive } from './processes.mjs'

const POLL_MS = 200

/** Runs `work` while holding the lock. A lock whose holder is gone counts for nothing. */
export async function withSetupLock(path, work) {
  const mine = `${path}.${process.pid}`
  // Process numbers come back, after a restart of a container even soon; together with a start time they don't.
  writeFileSync(mine, `${process.pid} ${describe(process.pid)?.startTicks}`)
  try {
    let told = false
    while (!placed(mine, path)) {
      const found = contentOf(path)
      if (found === undefined) continue
      const [pid, startTicks] = found.split(' ')
      if (!isAlive(Number(pid)) || String(describe(Number(pid))?.startTicks) !== startTicks) {
        takeAway(path, found, mine)
        continue
      }
      if (!told) console.error(`Waiting for the set-up that process ${pid} is doing…`)
      told = true
      await sleep(POLL_MS)
    }
    try {
      return await work()
    } finally {
      rmSync(path, { force: true })
    }
  } finally {
    rmSync(mine, { force: true })
  }
}

/** A link appears whole or not at all, unlike a file that is opened first and filled afterwards. */
function placed(mine, path) {
  try {
    linkSync(mine, path)
    return true
  } catch (error) {
    if (error.code === 'EEXIST') return false
    throw error
  }
}

/** Two may find the same stale lock: the slower one then holds the new lock of the faster, and puts it back. */
function takeAway(path, stale, mine) {
  const aside = `${mine}.stale`
  try {
    renameSync(path, aside)
  } catch {
    return
  }
  if (contentOf(aside) !== stale) placed(aside, path)
  rmSync(aside, { force: true })
}

function contentOf(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
