import { closeSync, fsyncSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { cpus, release, tmpdir, totalmem, type } from 'node:os'
import { join } from 'node:path'
import { median } from './statistics.js'

export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memoryGb: number
  readonly system: string
  readonly node: string
  /** Where the servers keep their files: on tmpfs fsync costs nothing, and durable figures mean little. */
  readonly temporaryFolder: { readonly fileSystem: string; readonly fsyncMs: number }
}

export function describeMachine(): Machine {
  const processors = cpus()
  return {
    cpu: processors[0]?.model.trim() ?? 'unknown',
    cores: processors.length,
    memoryGb: Math.round((totalmem() / 2 ** 30) * 10) / 10,
    system: `${type()} ${release()}`,
    node: process.version,
    temporaryFolder: { fileSystem: fileSystemOf(tmpdir()), fsyncMs: measureFsyncMs(tmpdir()) },
  }
}

function fileSystemOf(folder: string): string {
  try {
    const mounts = readFileSync('/proc/self/mounts', 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.split(' '))
      .filter(([, at]) => at === '/' || folder === at || folder.startsWith(`${at}/`))
    mounts.sort((a, b) => (b[1] as string).length - (a[1] as string).length)
    return mounts[0]?.[2] ?? 'unknown'
  } catch {
    return 'unknown'
  }
}

/** One page written and made safe, as Postgres does at every commit. */
function measureFsyncMs(folder: string): number {
  const path = join(folder, `holdfast-bench-fsync-${process.pid}`)
  const file = openSync(path, 'w')
  try {
    const page = Buffer.alloc(8_192, 1)
    const times: number[] = []
    for (let i = 0; i < 50; i += 1) {
      const from = performance.now()
      writeSync(file, page)
      fsyncSync(file)
      times.push(performance.now() - from)
    }
    return median(times)
  } finally {
    closeSync(file)
    rmSync(path, { force: true })
  }
}
