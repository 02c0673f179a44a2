/** Starts processes that hold a lock. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { ConnectOptions } from '../../../src/index.js'

export type Told = { type: 'held'; token: number } | { type: 'released' } | { type: 'lost'; code: string }

export interface Holder {
  readonly token: number
  letGo(): void
  pause(): void
  resume(): void
  kill(): Promise<void>
  /** What it says when it has the lock no more. */
  readonly end: Promise<Told>
}

const FOLDER = fileURLToPath(new URL('../../../../../node_modules/.cache/holdfast', import.meta.url))

export class Holders {
  readonly #file: string
  readonly #children: ChildProcess[] = []

  private constructor(file: string) {
    this.#file = file
  }

  /** They run the sources, like the tests do. */
  static async prepare(): Promise<Holders> {
    mkdirSync(FOLDER, { recursive: true })
    const outfile = join(FOLDER, `holder-${process.pid}-${Date.now()}.mjs`)
    await build({
      entryPoints: [fileURLToPath(new URL('holder.ts', import.meta.url))],
      outfile,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      packages: 'external',
      logLevel: 'warning',
    })
    return new Holders(outfile)
  }

  /** Resolves when it has the lock. */
  async start(options: ConnectOptions, walletId: string, ttlMs: number): Promise<Holder> {
    const child = fork(this.#file, [JSON.stringify(options), walletId, `${ttlMs}`], { serialization: 'json' })
    this.#children.push(child)
    const exited = once(child, 'exit')
    const [held] = (await Promise.race([
      once(child, 'message'),
      exited.then(([code]) => Promise.reject(new Error(`It ended with ${code} before it had the lock`))),
    ])) as [Told]
    if (held.type !== 'held') throw new Error(`It was to hold the lock, and is ${held.type}`)
    return {
      token: held.token,
      letGo: () => void child.send('let go'),
      pause: () => void child.kill('SIGSTOP'),
      resume: () => void child.kill('SIGCONT'),
      async kill() {
        child.kill('SIGKILL')
        await exited
      },
      end: once(child, 'message').then(([told]) => told as Told),
    }
  }

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
