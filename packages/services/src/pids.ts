/** What the operating system knows about processes that are not ours to wait for. */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'

const HAS_PROC = existsSync('/proc/self/stat')

/** Fields of /proc/<pid>/stat after the command's name, which may itself contain blanks and brackets. */
function statFields(pid: number | string): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined
  }
}

const ps = (...args: string[]) => execFileSync('ps', args, { encoding: 'utf8' })

export function childrenOf(parent: number): number[] {
  if (HAS_PROC) {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name) && statFields(name)?.[1] === String(parent))
      .map(Number)
  }
  return ps('-A', '-o', 'pid=,ppid=')
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
    .filter(([, ppid]) => ppid === parent)
    .map(([pid]) => pid as number)
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  // A zombie answers signal 0 but does nothing any more: it waits for a parent that may never look.
  return !HAS_PROC || statFields(pid)?.[0] !== 'Z'
}

/** Tells this process from a later one with the same number: process numbers come back, together with a start time they don't. */
export function identityOf(pid: number): string | undefined {
  if (HAS_PROC) {
    const startTicks = statFields(pid)?.[19]
    if (startTicks === undefined) return undefined
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}/${startTicks}`
  }
  try {
    return ps('-o', 'lstart=', '-p', String(pid)).trim()
  } catch {
    return undefined
  }
}

/** Whether the process works in that folder or, where the system doesn't tell, was started with it on its command line. */
export function worksIn(pid: number, folder: string): boolean {
  try {
    return HAS_PROC
      ? readlinkSync(`/proc/${pid}/cwd`) === folder
      : ps('-o', 'command=', '-p', String(pid)).includes(folder)
  } catch {
    return false
  }
}

/** A process that is gone already is what every caller wants in the end, so that is no error. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
