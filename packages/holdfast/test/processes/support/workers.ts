/** Starts workers, and writes down what they say. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { ConnectOptions } from '../../../src/index.js'
import type { Operation, Order, Outcome, Told } from './operations.js'

const ROOT = fileURLToPath(new URL('../../../../..', import.meta.url))
/** Where what it imports is found, and nothing is checked in. */
const FOLDER = join(ROOT, 'node_modules/.cache/holdfast')

/** One operation as a client saw it: begun, and perhaps answered. */
export interface Seen {
  readonly worker: string
  readonly operation: Operation
  outcome: Outcome | null
}

export interface Worker {
  readonly name: string
  readonly pid: number
  /** The last total of units that it said, before it delivered or told of them. */
  readonly units: number
  order(order: Order): void
  /** Resolves when the worker says so, or has said so before. */
  told(type: Told['type']): Promise<void>
  /** SIGKILL, as when the machine goes; resolves when it is gone. */
  kill(): Promise<void>
  pause(): void
  resume(): void
  /** Lets it answer what is under way and end by itself; its exit code. */
  close(): Promise<number | null>
}

export class Workers {
  readonly history: Seen[] = []
  readonly #file: string
  readonly #children: ChildProcess[] = []
  readonly #crashes: string[] = []

  private constructor(file: string) {
    this.#file = file
  }

  /** The worker runs the sources, like the tests do. */
  static async prepare(): Promise<Workers> {
    mkdirSync(FOLDER, { recursive: true })
    const file = join(FOLDER, `worker-${process.pid}-${Date.now()}.mjs`)
    await build({
      entryPoints: [fileURLToPath(new URL('worker.ts', import.meta.url))],
      outfile: file,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      packages: 'external',
      sourcemap: 'inline',
      logLevel: 'warning',
    })
    return new Workers(file)
  }

  async start(name: string, options: ConnectOptions): Promise<Worker> {
    const child = fork(this.#file, [JSON.stringify(options)], {
      execArgv: ['--enable-source-maps'],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      serialization: 'json',
    })
    this.#children.push(child)
    let stderr = ''
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    // Not `exit`: what it has said by then may not have been heard yet.
    const exited = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>
    void exited.then(([code, signal]) => {
      if (code !== 0 && signal !== 'SIGKILL') this.#crashes.push(`${name} ended with ${code ?? signal}: ${stderr}`)
    })
    const said = new Set<Told['type']>()
    let units = 0
    child.on('message', (told: Told) => {
      said.add(told.type)
      if (told.type === 'units') units = told.total
      this.#note(name, told)
    })
    const told = (type: Told['type']) =>
      new Promise<void>((resolve, reject) => {
        if (said.has(type)) resolve()
        child.on('message', (message: Told) => {
          if (message.type === type) resolve()
        })
        void exited.then(() => reject(new Error(`${name} ended before it was ${type}: ${stderr}`)))
      })
    await told('ready')
    return {
      name,
      pid: child.pid as number,
      get units() {
        return units
      },
      order: (order) => void child.send(order),
      told,
      async kill() {
        child.kill('SIGKILL')
        await exited
      },
      pause: () => void child.kill('SIGSTOP'),
      resume: () => void child.kill('SIGCONT'),
      async close() {
        if (child.connected) child.send({ type: 'close' } satisfies Order)
        return (await exited)[0]
      },
    }
  }

  #note(worker: string, told: Told): void {
    if (told.type === 'begin') this.history.push({ worker, operation: told.operation, outcome: null })
    if (told.type !== 'end') return
    const { wallet, key } = told.operation
    const seen = this.history.findLast(
      (one) =>
        one.outcome === null && one.worker === worker && one.operation.key === key && one.operation.wallet === wallet,
    )
    if (!seen) throw new Error(`${worker} ended ${key} without beginning it`)
    seen.outcome = told.outcome
  }

  /** Nobody who should be gone is left. Throws what workers died of that nobody killed. */
  async stop(): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    }
    rmSync(this.#file, { force: true })
    if (this.#crashes.length > 0) throw new Error(this.#crashes.join('\n'))
  }
}
