/** One process a data folder. The lock of a process that is gone counts for nothing, however it went. */
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ServicesError } from './error.js'
import { identityOf, isAlive } from './pids.js'

export interface FolderLock {
  release(): void
}

/** A holder that was just stopped is on its way out: whoever starts again at once should not be told that it runs. */
const PATIENCE_MS = 2_000
const POLL_MS = 50

/** Throws a `ServicesError` that names the holder if another process, or this one, holds the folder and keeps it. */
export async function lockFolder(folder: string): Promise<FolderLock> {
  const path = join(folder, 'lock')
  const own = `${process.pid}\n${identityOf(process.pid)}\n`
  const mine = join(folder, `lock.${process.pid}`)
  writeFileSync(mine, own)
  try {
    const deadline = Date.now() + PATIENCE_MS
    for (;;) {
      if (placed(mine, path)) return { release: () => contentOf(path) === own && rmSync(path, { force: true }) }
      const found = contentOf(path)
      const holder = livingHolder(found)
      if (holder && Date.now() > deadline) {
        throw new ServicesError(
          `Holdfast is already running in ${folder} (process ${holder}). Stop it first, or choose another folder (--data-dir).`,
        )
      }
      if (holder) await sleep(POLL_MS)
      else takeAway(path, found, mine)
    }
  } finally {
    rmSync(mine, { force: true })
  }
}

/** A link either appears with its whole content or fails: no reader ever sees a lock half written. */
function placed(file: string, path: string): boolean {
  try {
    linkSync(file, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

function contentOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

function livingHolder(content: string | undefined): number | undefined {
  const [first, identity] = content?.split('\n') ?? []
  const pid = Number(first)
  return pid > 0 && isAlive(pid) && identityOf(pid) === identity ? pid : undefined
}

/** Two may find the same stale lock. The slower one then has the new lock of the faster in its hands, and puts it back. */
function takeAway(path: string, stale: string | undefined, mine: string): void {
  const aside = `${mine}.stale`
  try {
    renameSync(path, aside)
  } catch {
    return
  }
  if (contentOf(aside) !== stale) placed(aside, path)
  rmSync(aside, { force: true })
}
