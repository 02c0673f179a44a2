// What the operating system tells about other processes.
import { readFileSync } from 'node:fs'

export function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** From /proc, where there is one. The name stands in brackets and may contain some itself. */
export function describe(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const name = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'))
    return { name, parent: Number(fields[1]), startTicks: fields[19] }
  } catch {
    return undefined
  }
}
