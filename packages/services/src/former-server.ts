/** What an earlier life may have left in a data folder, so that it never stops the next start. */
import { readFileSync, rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { isAlive, sendSignal, worksIn } from './pids.js'

export interface FormerServer {
  /** Where a server of this kind writes its process number. */
  readonly pidFile: string
  /** The folder it works in. */
  readonly folder: string
  readonly orderly: NodeJS.Signals
  readonly hard: NodeJS.Signals
}

/** The guard has asked it to stop already; this is for one whose guard was killed as well. */
const ASK_AFTER_MS = 1_000
const HARD_AFTER_MS = 20_000
const GIVE_UP_AFTER_MS = 30_000
const POLL_MS = 25

/**
 * The caller holds the folder, so a server still running in it has lost its parent and is on its way down: it is waited
 * for. A file left by one that is dead is the server's own business, unless the number belongs to another process by
 * now: Postgres would take that one for itself and refuse to start.
 */
export async function settleFormerServer({ pidFile, folder, orderly, hard }: FormerServer): Promise<void> {
  const pid = pidIn(pidFile)
  if (pid === undefined || !isAlive(pid)) return
  if (!worksIn(pid, folder)) {
    rmSync(pidFile, { force: true })
    return
  }
  const started = Date.now()
  const waited = async (untilMs: number) => {
    while (isAlive(pid) && Date.now() - started < untilMs) await sleep(POLL_MS)
    return !isAlive(pid)
  }
  if (await waited(ASK_AFTER_MS)) return
  sendSignal(pid, orderly)
  if (await waited(HARD_AFTER_MS)) return
  sendSignal(pid, hard)
  await waited(GIVE_UP_AFTER_MS)
}

function pidIn(pidFile: string): number | undefined {
  try {
    return Number.parseInt(readFileSync(pidFile, 'utf8'), 10) || undefined
  } catch {
    return undefined
  }
}
