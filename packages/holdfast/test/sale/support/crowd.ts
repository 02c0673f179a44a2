/** Starts processes with buyers in them. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { ConnectOptions } from '../../../src/index.js'
import type { Bought, Order, Told } from './orders.js'

const ROOT = fileURLToPath(new URL('../../../../..', import.meta.url))
/** Where what it imports is found, and nothing is checked in. */
const FOLDER = join(ROOT, 'node_modules/.cache/holdfast')

export interface Buyers {
  /** What was bought, when all of it is done. */
  order(order: Order): Promise<readonly Bought[]>
  /** SIGKILL, as when the machine goes; resolves when it is gone. */
  kill(): Promise<void>
}

export class Crowd {
  readonly #file: string
  readonly #children: ChildProcess[] = []

  private constructor(file: string) {
    this.#file = file
  }

  /** They run the sources, like the tests do. */
  static async prepare(): Promise<Crowd> {
    mkdirSync(FOLDER, { recursive: true })
    const file = join(FOLDER, `buyers-${process.pid}-${Date.now()}.mjs`)
    await build({
      entryPoints: [fileURLToPath(new URL('buyers.ts', import.meta.url))],
      outfile: file,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      packages: 'external',
      sourcemap: 'inline',
      logLevel: 'warning',
    })
    return new Crowd(file)
  }

  async start(options: ConnectOptions): Promise<Buyers> {
    const child = fork(this.#file, [JSON.stringify(options)], {
      execArgv: ['--enable-source-maps'],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    this.#children.push(child)
    const exited = once(child, 'exit')
    const told = async (type: Told['type']): Promise<Told> => {
      const [message] = await Promise.race([
        once(child, 'message') as Promise<[Told]>,
        exited.then((): [Told] => {
          throw new Error('The process of a crowd ended')
        }),
      ])
      if (message.type !== type) throw new Error(`Expected ${type}, got ${message.type}`)
      return message
    }
    await told('ready')
    return {
      async order(order) {
        const done = told('done')
        child.send(order)
        return ((await done) as Extract<Told, { type: 'done' }>).bought
      },
      async kill() {
        child.kill('SIGKILL')
        await exited
      },
    }
  }

  /** Nobody who should be gone is left. */
  async stop(): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    }
    rmSync(this.#file, { force: true })
  }
}
