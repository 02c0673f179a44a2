/** Runs a file of tests as processes of their own: they can be paused, and killed. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const FOLDER = fileURLToPath(new URL('../../../../../node_modules/.cache/holdfast', import.meta.url))

export interface Worker {
  pause(): void
  resume(): void
  kill(): Promise<void>
  /** What it has told so far. */
  readonly told: readonly unknown[]
  /** The code that it ended with; null: it was killed. */
  readonly ended: Promise<number | null>
}

export class Workers {
  readonly #file: string
  readonly #children: ChildProcess[] = []

  private constructor(file: string) {
    this.#file = file
  }

  /** They run the sources, like the tests do. */
  static async prepare(entry: URL): Promise<Workers> {
    mkdirSync(FOLDER, { recursive: true })
    const outfile = join(FOLDER, `worker-${process.pid}-${Date.now()}.mjs`)
    await build({
      entryPoints: [fileURLToPath(entry)],
      outfile,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      packages: 'external',
      logLevel: 'warning',
    })
    return new Workers(outfile)
  }

  start(options: unknown): Worker {
    const child = fork(this.#file, [JSON.stringify(options)], { serialization: 'json' })
    this.#children.push(child)
    const told: unknown[] = []
    child.on('message', (message) => told.push(message))
    // What it has told is there until the end of the channel, which may come after its own.
    const over = Promise.all([once(child, 'exit'), once(child, 'disconnect')])
    const ended = over.then(([[code]]) => code as number | null)
    return {
      told,
      ended,
      pause: () => void child.kill('SIGSTOP'),
      resume: () => void child.kill('SIGCONT'),
      async kill() {
        child.kill('SIGKILL')
        await ended
      },
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
