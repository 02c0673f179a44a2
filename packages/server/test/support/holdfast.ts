/** The command `holdfast` as users run it: the built package, in a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeAll, vi } from 'vitest'
import { built } from '../../../../test/servers.js'

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url))

/** On a machine that stands still for a moment, nobody who is there is taken to be away. */
const PATIENT = { HOLDFAST_HEALTH_TIMEOUT_MS: '20000' }

// A process, or several, each time: they take as long as the machine makes them.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

export interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
  durationMs: number
}

export class HoldfastProcess {
  readonly ended: Promise<Ended>
  readonly #child: ChildProcess
  #stdout = ''
  #stderr = ''

  constructor(
    args: readonly string[],
    { env = {}, cwd }: { env?: Record<string, string>; cwd?: string | undefined } = {},
  ) {
    const startedAt = performance.now()
    // Only what a test gives it: no DATABASE_URL of the machine may get in, and no colours.
    const environment = { PATH: process.env.PATH, HOME: process.env.HOME, NO_COLOR: '1', ...PATIENT, ...env }
    this.#child = spawn(process.execPath, [CLI, ...args], { cwd, env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
    this.#child.stdout?.on('data', (chunk) => {
      this.#stdout += chunk
    })
    this.#child.stderr?.on('data', (chunk) => {
      this.#stderr += chunk
    })
    this.ended = once(this.#child, 'close').then(([code, signal]) => ({
      code,
      signal,
      stdout: this.#stdout,
      stderr: this.#stderr,
      durationMs: performance.now() - startedAt,
    }))
  }

  get stdout(): string {
    return this.#stdout
  }

  get stderr(): string {
    return this.#stderr
  }

  get pid(): number {
    return this.#child.pid as number
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** The URL that it says it listens on. */
  async ready(): Promise<string> {
    let over = false
    const end = this.ended.then(() => {
      over = true
    })
    while (!/^ready in|"event":"ready"/m.test(this.#stdout)) {
      if (over) throw new Error(`holdfast ended before it was ready:\n${this.#stdout}\n${this.#stderr}`)
      await Promise.race([once(this.#child.stdout as NodeJS.ReadableStream, 'data'), end])
    }
    return /http:\/\/[\d.]+:\d+/.exec(this.#stdout)?.[0] as string
  }

  async stop(): Promise<Ended> {
    this.#child.kill('SIGTERM')
    return this.ended
  }
}

const running = new Set<HoldfastProcess>()

// Where it has to be built first, that counts as set-up and not as a slow test.
beforeAll(() => built())

afterEach(async () => {
  for (const one of running) {
    one.signal('SIGKILL')
    await one.ended
  }
  running.clear()
})

/** Starts the command; what a test leaves running is killed after it. */
export async function holdfast(
  args: readonly string[],
  options: { env?: Record<string, string>; cwd?: string } = {},
): Promise<HoldfastProcess> {
  const started = new HoldfastProcess(args, options)
  running.add(started)
  return started
}

/** Runs it to its end. */
export const run = async (args: readonly string[], options: { env?: Record<string, string>; cwd?: string } = {}) =>
  (await holdfast(args, options)).ended

/** Standard error without lines of progress: those come with whatever takes longer than a second, be it that the machine stood still. */
export const complaintsIn = (stderr: string): string => stderr.replaceAll(/^holdfast: .* so far\n/gm, '')
