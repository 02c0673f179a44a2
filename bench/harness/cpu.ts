/** Processor time of servers and workers, from /proc. Where there is none (not Linux) there are no figures. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'

export const HAS_PROC = existsSync('/proc/self/stat')

/** USER_HZ: the unit of these files on every Linux that Node runs on, whatever the kernel's own tick is. */
const TICK_MS = 10

interface Stat {
  readonly parent: number
  readonly ownMs: number
  /** Of children that have ended. */
  readonly endedMs: number
}

function statOf(pid: number): Stat | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The command's name may itself contain blanks and brackets.
    const fields = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    const [user, system, endedUser, endedSystem] = fields.slice(11, 15) as [number, number, number, number]
    return {
      parent: fields[1] as number,
      ownMs: (user + system) * TICK_MS,
      endedMs: (endedUser + endedSystem) * TICK_MS,
    }
  } catch {
    return undefined
  }
}

/** Of a process and its children, those that have ended included: Postgres has one a connection. */
export function treeCpuMs(root: number): number {
  if (!HAS_PROC) return Number.NaN
  const stat = statOf(root)
  if (!stat) return Number.NaN
  let ms = stat.ownMs + stat.endedMs
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const child = statOf(Number(name))
    if (child?.parent === root) ms += child.ownMs + child.endedMs
  }
  return ms
}

/** All that the machine's processors have worked, for whomever. */
export function machineBusyMs(): number {
  if (!HAS_PROC) return Number.NaN
  const line = readFileSync('/proc/stat', 'utf8').split('\n')[0] as string
  // user nice system idle iowait irq softirq steal: work that a neighbour of this virtual machine got in our place counts too.
  const [user, nice, system, , , irq, softirq, steal] = line.trim().split(/\s+/).slice(1).map(Number) as number[]
  return [user, nice, system, irq, softirq, steal].reduce<number>((sum, ticks) => sum + (ticks ?? 0), 0) * TICK_MS
}
