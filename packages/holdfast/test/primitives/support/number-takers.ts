/** Starts processes that take numbers, and kills them. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

export interface Order {
  readonly redis: string
  readonly postgres: string
  readonly operation: string
  readonly blockSize: number
}

const FOLDER = fileURLToPath(new URL('../../../../../node_modules/.cache/holdfast', import.meta.url))

export class NumberTakers {
  /** All that any of them was given, in the order in which it was told. */
  readonly numbers: number[] = []
  readonly #file: string
  readonly #running = new Set<ChildProcess>()

  private constructor(file: string) {
    this.#file = file
  }

  /** They run the sources, like the tests do. */
  static async prepare(): Promise<NumberTakers> {
    mkdirSync(FOLDER, { recursive: true })
    const outfile = join(FOLDER, `number-taker-${process.pid}-${Date.now()}.mjs`)
    await build({
      entryPoints: [fileURLToPath(new URL('number-taker.ts', import.meta.url))],
      outfile,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      packages: 'external',
      logLevel: 'warning',
    })
    return new NumberTakers(outfile)
  }

  /** Resolves when it has told so many numbers and was killed in the middle of the next. */
  async killAfter(order: Order, numbers: number): Promise<void> {
    const child = fork(this.#file, [JSON.stringify(order)], { serialization: 'json' })
    this.#running.add(child)
    // What it has said is there until the end of the channel, which may come after its own.
    const ended = Promise.all([once(child, 'exit'), once(child, 'disconnect')])
    let told = 0
    child.on('message', (number) => {
      this.numbers.push(number as number)
      told += 1
      if (told === numbers) child.kill('SIGKILL')
    })
    const [[code, signal]] = await ended
    this.#running.delete(child)
    if (signal !== 'SIGKILL') throw new Error(`It ended by itself, with ${code}, after ${told} numbers`)
  }

  stop(): void {
    for (const child of this.#running) child.kill('SIGKILL')
    rmSync(this.#file, { force: true })
  }
}
