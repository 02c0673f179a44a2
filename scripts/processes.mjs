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

/**
 * Signals to this process are meant for the child. The terminal sends Ctrl-C to both, so that one is passed on only if the
 * child is still there a little later; whoever sends it to npm alone has to wait that long.
 */
export function passOnSignals(child) {
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  process.on('SIGINT', () => setTimeout(() => child.kill('SIGINT'), 1_000).unref())
}
