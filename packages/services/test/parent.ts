/** Runs parent.mjs: servers in a process of their own, so that the process can be made to end badly. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { vi } from 'vitest'
import { built } from '../../../test/servers.js'

// Servers in processes of their own take as long as the machine makes them.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

export interface Started {
  pids: number[]
  folder: string
  databaseUrl: string
  redisUrl: string
  postgres: number
  error?: string
  message?: string
}

export interface Parent {
  readonly process: ChildProcess
  readonly started: Started
  /** Tells it to end that way, or sends it a signal, and waits until it is gone. */
  end(how: 'exit' | 'throw' | NodeJS.Signals): Promise<void>
}

export interface ParentOptions {
  uid?: number
  env?: NodeJS.ProcessEnv
}

export async function startParent(
  what: 'dev' | 'temporary' | 'cluster' | 'paused',
  dir = '',
  { uid, env }: ParentOptions = {},
): Promise<Parent> {
  await built()
  const program = fileURLToPath(new URL('parent.mjs', import.meta.url))
  const child = spawn(process.execPath, [program, what, dir], {
    stdio: ['pipe', 'pipe', 'ignore'],
    env: { ...process.env, ...env },
    ...(uid !== undefined && { uid, gid: uid }),
  })
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  return {
    process: child,
    started: JSON.parse(line),
    async end(how) {
      const exited = once(child, 'exit')
      if (how === 'exit' || how === 'throw') child.stdin.write(`${how}\n`)
      else child.kill(how)
      await exited
    },
  }
}

/** Process numbers of the given ones and of their children that are still there. */
export function alive(pids: readonly number[]): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      const [state, ppid] = statOf(pid)
      return state !== 'Z' && (pids.includes(pid) || pids.includes(Number(ppid)))
    })
}

function statOf(pid: number): string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return ['Z']
  }
}

export async function until(isSo: () => boolean | Promise<boolean>, timeoutMs = 60_000): Promise<void> {
  const deadline = Date.now() + timeoutMs
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error(`Still not so after ${timeoutMs} ms: ${isSo}`)
    await sleep(20)
  }
}
