/** One server under our control: started, watched, stopped, and, for fault tests, killed, paused and started again. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { ServicesError } from './error.js'
import { forgetServer, guardServer, type StopSignal } from './guard.js'
import { childrenOf, isAlive, sendSignal } from './pids.js'

export interface Command {
  readonly file: string
  readonly args: readonly string[]
  readonly env?: NodeJS.ProcessEnv
  readonly uid?: number
  readonly gid?: number
}

export interface ServerProcessOptions {
  /** As it appears in messages, such as `Postgres`. */
  readonly name: string
  readonly command: Command
  /** Working folder of the server. */
  readonly folder: string
  readonly logFile: string
  readonly stopSignal: StopSignal
  /** Resolves to true once the server serves; asked again and again, with its process id, until then. */
  readonly isReady: (pid: number) => Promise<boolean>
  readonly startTimeoutMs?: number
}

const START_TIMEOUT_MS = 30_000
const STOP_TIMEOUT_MS = 10_000
const POLL_MS = 15
const LOG_TAIL_LINES = 8

export class ServerProcess {
  readonly #options: ServerProcessOptions
  #child: ChildProcess | undefined
  #pausedPids: number[] = []

  constructor(options: ServerProcessOptions) {
    this.#options = options
  }

  /** Process id of the running server; undefined while it is down. */
  get pid(): number | undefined {
    return this.#child?.pid
  }

  async start(): Promise<void> {
    if (this.#child) throw new ServicesError(`${this.#options.name} is already running with process id ${this.pid}`)
    const child = this.#spawn()
    await this.#untilReady(child)
  }

  /** An orderly stop, then SIGKILL if that takes too long. Stopping what is down already is no error. */
  async stop(): Promise<void> {
    const child = this.#child
    if (!child) return
    this.resume()
    child.ref()
    const exited = once(child, 'exit')
    child.kill(this.#options.stopSignal)
    const killer = setTimeout(() => this.#killTree(child), STOP_TIMEOUT_MS)
    await exited
    clearTimeout(killer)
  }

  /** SIGKILL to the server and its own children: nothing that was not on disk or sent is finished. */
  async kill(): Promise<void> {
    const child = this.#child
    if (!child?.pid) return
    child.ref()
    const exited = once(child, 'exit')
    const children = this.#killTree(child)
    await exited
    // Children of a killed Postgres keep its shared memory until they are gone, and it won't start again before that.
    while (children.some(isAlive)) await sleep(POLL_MS)
  }

  /** SIGSTOP: connections stay open, nothing answers. */
  pause(): void {
    const pid = this.pid
    if (!pid) throw new ServicesError(`${this.#options.name} is not running, so it can't be paused`)
    if (this.#pausedPids.length > 0) return
    sendSignal(pid, 'SIGSTOP')
    // Only now: a server that is stopped has no further children.
    this.#pausedPids = childrenOf(pid)
    for (const childPid of this.#pausedPids) {
      guardServer(childPid, 'SIGKILL')
      sendSignal(childPid, 'SIGSTOP')
    }
    this.#pausedPids.push(pid)
  }

  resume(): void {
    for (const pid of this.#pausedPids) {
      sendSignal(pid, 'SIGCONT')
      if (pid !== this.pid) forgetServer(pid, 'SIGKILL')
    }
    this.#pausedPids = []
  }

  /** Same command, port and folder. */
  async restart(): Promise<void> {
    await this.stop()
    await this.start()
  }

  #spawn(): ChildProcess {
    const { name, command, folder, logFile, stopSignal } = this.#options
    const log = openSync(logFile, 'a')
    const child = spawn(command.file, command.args, {
      cwd: folder,
      detached: true,
      stdio: ['ignore', log, log],
      ...(command.env && { env: command.env }),
      ...(command.uid !== undefined && { uid: command.uid }),
      ...(command.gid !== undefined && { gid: command.gid }),
    })
    closeSync(log)
    child.unref()
    const { pid } = child
    if (pid === undefined) {
      child.on('error', () => {})
      throw new ServicesError(`${name} could not be started: ${command.file} can't be run`)
    }
    guardServer(pid, stopSignal)
    this.#child = child
    child.once('exit', () => {
      forgetServer(pid, stopSignal)
      this.resume()
      this.#child = undefined
    })
    return child
  }

  async #untilReady(child: ChildProcess): Promise<void> {
    const { name, startTimeoutMs = START_TIMEOUT_MS, isReady } = this.#options
    const deadline = Date.now() + startTimeoutMs
    for (;;) {
      if (this.#child !== child) throw new ServicesError(`${name} ended while starting.${this.#logTail()}`)
      if (await isReady(child.pid as number)) return
      if (Date.now() > deadline) {
        await this.kill()
        throw new ServicesError(`${name} was not ready after ${startTimeoutMs} ms.${this.#logTail()}`)
      }
      await sleep(POLL_MS)
    }
  }

  #killTree(child: ChildProcess): number[] {
    const pid = child.pid as number
    sendSignal(pid, 'SIGSTOP')
    const children = childrenOf(pid)
    for (const childPid of children) sendSignal(childPid, 'SIGKILL')
    sendSignal(pid, 'SIGKILL')
    return children
  }

  #logTail(): string {
    const { logFile } = this.#options
    const lines = readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-LOG_TAIL_LINES)
    return ` Last lines of ${logFile}:\n  ${lines.join('\n  ')}`
  }
}
