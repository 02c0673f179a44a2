/**
 * A clone of the repository with its dependencies, in a folder with a space in its name, to run the commands in as a
 * person would. Dependencies are hard links and `dist/` is copied: a real `npm install` would need the network and a minute.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { vi } from 'vitest'
import { scratchFolder } from '../packages/services/src/folder.js'
import { built } from './servers.js'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const CACHE = 'node_modules/.cache/holdfast'
const NOT_CLONED = new Set(['node_modules', '.git', '.holdfast', 'report'])

// Commands that build, test and start servers take as long as the machine makes them.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 })

export interface RunOptions {
  env?: NodeJS.ProcessEnv
  /** Runs as another user; only root may. */
  uid?: number | undefined
  /** Default: the clone. */
  cwd?: string
}

export interface Command {
  readonly process: ChildProcess
  /** Standard output and error so far. */
  output(): string
  /** Resolves with the first part of the output that matches; throws, with all of it, when the command ends before. */
  seen(pattern: RegExp): Promise<RegExpExecArray>
  /** Exit code once it has ended. */
  readonly ended: Promise<number | null>
}

export interface Clone {
  readonly path: string
  run(file: string, args: readonly string[], options?: RunOptions): Command
  /** Kills what still runs and removes the folder. */
  remove(): Promise<void>
}

export async function cloneRepository(): Promise<Clone> {
  await built()
  const scratch = scratchFolder('clone')
  const path = join(scratch.path, 'a clone')
  cpSync(ROOT, path, { recursive: true, filter: (source) => !NOT_CLONED.has(basename(source)) })
  linkModules('node_modules', path)
  for (const name of readdirSync(join(ROOT, 'packages'))) linkModules(`packages/${name}/node_modules`, path)
  // What is noted about set-up is true of the clone as well: it is about contents.
  mkdirSync(join(path, CACHE), { recursive: true })
  for (const step of ['install', 'build'])
    cpSync(join(ROOT, CACHE, `${step}.stamp`), join(path, CACHE, `${step}.stamp`))

  const commands: Command[] = []
  return {
    path,
    run(file, args, options = {}) {
      const command = run(file, args, { cwd: path, ...options })
      commands.push(command)
      return command
    },
    async remove() {
      for (const command of commands) killGroup(command.process)
      await Promise.all(commands.map((command) => command.ended))
      scratch.remove()
    },
  }
}

function linkModules(folder: string, clone: string): void {
  const from = join(ROOT, folder)
  if (!existsSync(from)) return
  const to = join(clone, folder)
  mkdirSync(to)
  const entries = readdirSync(from).filter((name) => name !== '.cache' && !name.startsWith('.vite'))
  const paths = entries.map((name) => join(from, name))
  // `-l`: hard links, where both folders are on one file system.
  try {
    execFileSync('cp', ['-al', ...paths, to], { stdio: 'ignore' })
  } catch {
    execFileSync('cp', ['-R', '-P', '-p', ...paths, to])
  }
}

/** In a process group of its own, so that it can be ended as a whole. */
function run(file: string, args: readonly string[], { env, uid, cwd }: RunOptions): Command {
  const child = spawn(file, args, {
    cwd,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
    ...(uid !== undefined && { uid, gid: uid }),
  })
  let output = ''
  const ended = once(child, 'close').then(([code]) => code as number | null)
  child.stdout.setEncoding('utf8').on('data', (text) => (output += text))
  child.stderr.setEncoding('utf8').on('data', (text) => (output += text))
  return {
    process: child,
    output: () => output,
    ended,
    seen(pattern) {
      return new Promise((resolve, reject) => {
        const look = () => {
          const match = pattern.exec(output)
          if (match) resolve(match)
        }
        child.stdout.on('data', look)
        child.stderr.on('data', look)
        look()
        ended.then(
          (code) => reject(new Error(`${file} ended with ${code} before ${pattern} was seen:\n${output}`)),
          reject,
        )
      })
    },
  }
}

function killGroup({ pid }: ChildProcess): void {
  try {
    process.kill(-(pid as number), 'SIGKILL')
  } catch {
    // It has ended already.
  }
}
