/** What an earlier life may have left in the data folder, so that it never stops the next start. */
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isAlive, sendSignal, worksIn } from '../pids.js'

const ORDERLY_MS = 10_000
const POLL_MS = 25

/**
 * The caller holds the folder, so a Postgres still running in it has lost its parent: it is on its way down, and is
 * stopped here if it isn't. A file left by one that is dead is Postgres's own business, which also looks for surviving
 * backends, unless its process number now belongs to somebody else: Postgres would take that one for itself and refuse to start.
 */
export async function settleFormerServer(data: string): Promise<void> {
  const pidFile = join(data, 'postmaster.pid')
  const pid = pidIn(pidFile)
  if (pid === undefined || !isAlive(pid)) return
  if (!worksIn(pid, data)) {
    rmSync(pidFile, { force: true })
    return
  }
  const started = Date.now()
  let asked: NodeJS.Signals | undefined
  while (isAlive(pid)) {
    const waitedMs = Date.now() - started
    const next = waitedMs > 2 * ORDERLY_MS ? 'SIGQUIT' : waitedMs > ORDERLY_MS / 10 ? 'SIGINT' : undefined
    if (next && next !== asked) sendSignal(pid, next)
    asked = next
    if (waitedMs > 3 * ORDERLY_MS) return
    await sleep(POLL_MS)
  }
}

function pidIn(pidFile: string): number | undefined {
  try {
    return Number.parseInt(readFileSync(pidFile, 'utf8'), 10) || undefined
  } catch {
    return undefined
  }
}
