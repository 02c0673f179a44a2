/** A worker as the harness sees it. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { BenchError } from './error.js'
import type { Answer, Requests } from './worker.js'

const ANSWER_TIMEOUT_MS = 120_000
const STOP_TIMEOUT_MS = 5_000

export class WorkerProcess {
  readonly #name: string
  readonly #child: ChildProcess
  readonly #exited: Promise<unknown>

  /** `profileFolder`: where Node writes down what the worker spent its time on. */
  constructor(name: string, profileFolder: string | undefined) {
    this.#name = name
    const flags = profileFolder === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileFolder}`]
    this.#child = fork(process.argv[1] as string, ['worker'], { execArgv: [...process.execArgv, ...flags] })
    this.#exited = once(this.#child, 'exit')
  }

  get pid(): number {
    return this.#child.pid as number
  }

  async ask<T extends keyof Requests>(type: T, ask: Requests[T]['ask']): Promise<Requests[T]['answer']> {
    const enough = new AbortController()
    const timer = setTimeout(() => enough.abort(), ANSWER_TIMEOUT_MS)
    try {
      const answered = once(this.#child, 'message', { signal: enough.signal }) as Promise<[Answer]>
      this.#child.send({ type, ask })
      const [answer] = await Promise.race([answered, this.#exited.then(() => [{ error: 'it ended' }] as [Answer])])
      if ('error' in answer) throw new BenchError(`${this.#name}, asked to ${type}: ${answer.error}`)
      return answer.result as Requests[T]['answer']
    } catch (error) {
      if (!enough.signal.aborted) throw error
      throw new BenchError(`${this.#name}, asked to ${type}: no answer within ${ANSWER_TIMEOUT_MS} ms`)
    } finally {
      clearTimeout(timer)
      enough.abort()
    }
  }

  /** In an orderly way if it can, and in any case. */
  async stop(): Promise<void> {
    const killer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_TIMEOUT_MS)
    if (this.#child.connected) await this.ask('close', undefined).catch(() => {})
    if (this.#child.connected) this.#child.disconnect()
    await this.#exited
    clearTimeout(killer)
  }
}
