import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import type { ConnectOptions } from 'holdfast'
import { type Asked, readHistory, type Seen, YesCount } from './history.js'
import type { WorkerOrder } from './worker.js'

/**
 * Where what a worker imports is found, and nothing is checked in. From the root of the repository, where everything here is run: this
 * module itself lies elsewhere when it is bundled.
 */
const CACHE = 'node_modules/.cache/holdfast'

/** A worker process, as the harness has it in its hand. */
export class Worker {
  readonly name: string
  readonly historyFile: string
  readonly yeses: YesCount
  readonly #child: ChildProcess
  readonly #exited: Promise<[number | null, NodeJS.Signals | null]>
  #stderr = ''
  #paused = false

  constructor(program: string, order: WorkerOrder) {
    this.name = order.name
    this.historyFile = order.historyFile
    this.yeses = new YesCount(order.historyFile)
    this.#child = fork(program, [JSON.stringify(order)], {
      execArgv: ['--enable-source-maps'],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text
    })
    this.#exited = once(this.#child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  get paused(): boolean {
    return this.#paused
  }

  async ready(): Promise<void> {
    const ended = this.#exited.then(() => {
      throw new Error(`${this.name} ended before it was ready: ${this.#stderr}`)
    })
    await Promise.race([once(this.#child, 'message'), ended])
  }

  /** SIGKILL, as when the machine goes. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#exited
  }

  pause(): void {
    this.#paused = true
    this.#child.kill('SIGSTOP')
  }

  resume(): void {
    this.#paused = false
    this.#child.kill('SIGCONT')
  }

  /** Lets its callers hear the answers that they wait for, and closes; throws if it does not end well. */
  async finish(withinMs: number): Promise<void> {
    if (!this.running) throw new Error(`${this.name} ended by itself: ${this.#stderr}`)
    this.#child.send('enough')
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), withinMs)
    const [code, signal] = await this.#exited
    clearTimeout(timer)
    if (signal === 'SIGKILL') throw new Error(`${this.name} was not done after ${withinMs} ms`)
    if (code !== 0) throw new Error(`${this.name} ended with ${code ?? signal}: ${this.#stderr}`)
  }

  history() {
    return readHistory(this.name, this.historyFile)
  }
}

export interface FleetSettings {
  readonly callers: number
  readonly wallets: readonly string[]
  readonly seed: number
  /** Where histories are kept. */
  readonly folder: string
}

/** All workers that there are or were. */
export class Fleet {
  readonly #program: string
  readonly #settings: FleetSettings
  readonly #all: Worker[] = []
  #started = 0

  private constructor(program: string, settings: FleetSettings) {
    this.#program = program
    this.#settings = settings
  }

  /** Workers run the sources, like the tests do. */
  static async prepare(settings: FleetSettings): Promise<Fleet> {
    mkdirSync(CACHE, { recursive: true })
    const program = join(process.cwd(), CACHE, `chaos-worker-${process.pid}-${Date.now()}.mjs`)
    await build({
      entryPoints: ['chaos/worker.ts'],
      outfile: program,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      packages: 'external',
      alias: { holdfast: './packages/holdfast/src/index.ts' },
      sourcemap: 'inline',
      logLevel: 'warning',
    })
    return new Fleet(program, settings)
  }

  get running(): Worker[] {
    return this.#all.filter(({ running }) => running)
  }

  async start(connect: ConnectOptions, inherited: readonly Asked[] = []): Promise<Worker> {
    const { callers, wallets, seed, folder } = this.#settings
    const number = ++this.#started
    const name = `w${number}`
    const worker = new Worker(this.#program, {
      name,
      seed: seed + number,
      callers,
      wallets,
      connect,
      historyFile: join(folder, `${name}.jsonl`),
      inherited,
    })
    this.#all.push(worker)
    await worker.ready()
    return worker
  }

  /** How often callers were told yes so far. */
  get yeses(): number {
    return this.#all.reduce((sum, { yeses }) => sum + yeses.count, 0)
  }

  get seen(): Seen[] {
    return this.#all.flatMap((worker) => worker.history().seen)
  }

  /** What all engines had to set right, together. */
  get counts(): Record<string, number> {
    const sum: Record<string, number> = {}
    for (const worker of this.#all) {
      for (const [name, count] of Object.entries(worker.history().counts)) sum[name] = (sum[name] ?? 0) + count
    }
    return sum
  }

  async finish(withinMs: number): Promise<void> {
    await Promise.all(this.running.map((worker) => worker.finish(withinMs)))
  }

  /** Whatever happened: nobody is left. */
  async stop(): Promise<void> {
    await Promise.all(this.running.map((worker) => worker.kill()))
    for (const { yeses } of this.#all) yeses.close()
    rmSync(this.#program, { force: true })
  }
}

/** What a worker had asked and got no answer to. */
export const unanswered = (worker: Worker): Asked[] =>
  worker
    .history()
    .seen.filter(({ answer, asked }) => answer === null && asked.kind !== 'read')
    .map(({ asked }) => asked)
