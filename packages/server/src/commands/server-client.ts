import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Config, ConfigError } from '../config/index.js'
import type { Problem } from '../http/problem.js'
import { StartError } from '../lifecycle/start-error.js'
import type { Terminal } from './command.js'

/** Long enough for a server that is restarted, short enough for one who waits at a terminal. */
const TRIES_MAX = 5
const FIRST_PAUSE_MS = 250
const ANSWER_TIMEOUT_MS = 15_000

/** The server said no. */
export class Refusal extends Error {
  override readonly name = 'Refusal'

  constructor(readonly problem: Problem) {
    const { type, title, status, detail, code, retryable, requestId, docs, ...facts } = problem
    const told = Object.entries(facts).map(([name, fact]) => `${name}: ${JSON.stringify(fact)}`)
    super(`${code}: ${detail}${told.length > 0 ? ` (${told.join(', ')})` : ''}`)
  }
}

export interface Request {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  /** Below `/v1`. */
  readonly path: string
  readonly body?: object
  /** Of what is not safe to repeat by itself. */
  readonly key?: string
}

/** Asks a server on behalf of a command. What is safe to repeat is repeated, and everything here is: by itself, or by its key. */
export class ServerClient {
  readonly #url: string
  readonly #apiKey: string
  readonly #terminal: Terminal

  constructor(config: Config, terminal: Terminal) {
    this.#url = (config.serverUrl as string).replace(/\/+$/, '')
    this.#apiKey = config.apiKey ?? keyOfDev(config)
    this.#terminal = terminal
  }

  async ask<Answer>(request: Request): Promise<Answer> {
    for (let tries = 1; ; tries += 1) {
      const answer = await this.#once<Answer>(request)
      if ('body' in answer) return answer.body
      const { problem, reason } = answer
      if (tries === TRIES_MAX || (problem && !problem.retryable)) throw this.#failure(request, answer)
      this.#terminal.progress(`${reason}; trying again (${tries + 1} of ${TRIES_MAX})`)
      await sleep(FIRST_PAUSE_MS * 2 ** (tries - 1))
    }
  }

  async #once<Answer>({ method, path, body, key }: Request) {
    try {
      const response = await fetch(`${this.#url}/v1${path}`, {
        method,
        headers: {
          authorization: `Bearer ${this.#apiKey}`,
          ...(body && { 'content-type': 'application/json' }),
          // Quoted: blanks at the ends of a bare value would be lost on the way.
          ...(key !== undefined && { 'idempotency-key': `"${key.replaceAll(/["\\]/g, '\\$&')}"` }),
        },
        ...(body && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
      })
      const answer = (await response.json()) as unknown
      if (response.ok) return { body: answer as Answer }
      const problem = answer as Problem
      return { problem, reason: `The server answers ${problem.code}` }
    } catch (error) {
      return { problem: null, reason: `No answer from ${new URL(this.#url).origin} (${reasonOf(error)})` }
    }
  }

  /** What moved something may have happened: with the same key that is settled. */
  #failure({ key }: Request, { problem, reason }: { problem: Problem | null; reason: string }): Error {
    const again = key === undefined ? '' : `\nWhether it was done is not known. The same again is safe: --key '${key}'`
    if (problem === null) return new StartError(reason + again)
    if (key !== undefined && problem.retryable) this.#terminal.complain(again.trim())
    return new Refusal(problem)
  }
}

/** Whoever runs `holdfast dev` in this folder need not copy its key; it is for no other machine than this. */
function keyOfDev({ dataDir, serverUrl }: Config): string {
  const file = join(dataDir as string, 'api-key')
  const { hostname } = new URL(serverUrl as string)
  const here = ['127.0.0.1', 'localhost', '[::1]'].includes(hostname)
  if (here && existsSync(file)) return readFileSync(file, 'utf8').trim()
  throw new ConfigError('HOLDFAST_KEY: expected an API key (hf_…) or a wallet token (hft_…), got nothing')
}

function reasonOf(error: unknown): string {
  const { cause, name, message } = error as Error & { cause?: { code?: string } }
  if (name === 'TimeoutError') return `nothing within ${ANSWER_TIMEOUT_MS / 1000} s`
  return cause?.code ?? (name === 'SyntaxError' ? 'something else than Holdfast answers there' : message)
}
