import { HoldfastError, type Telemetry } from 'holdfast'

export type Check = () => Promise<void>

export interface CheckResult {
  /** `stopped`: it is there, and an operator has to act before anything is decided. */
  status: 'up' | 'away' | 'stopped'
  durationMs: number
}

export interface ReadinessReport {
  /** It can do its work: also without what it can do without. */
  ready: boolean
  /** It is ready, and does without something. */
  degraded: boolean
  /** By dependency: `redis`, `postgres`. */
  checks: Record<string, CheckResult>
}

interface Options {
  timeoutMs: number
  /** Dependencies without which it goes on, slower. */
  dispensable?: readonly string[]
  telemetry: Telemetry
}

/**
 * Whether this process can do its work. Asked anew each time, so that it recovers by itself; however many ask at once, the
 * dependencies are asked once, so that probes can't use up the connections.
 */
export class Readiness {
  readonly #checks: Readonly<Record<string, Check>>
  readonly #timeoutMs: number
  readonly #dispensable: readonly string[]
  readonly #telemetry: Telemetry
  readonly #lastStatus = new Map<string, CheckResult['status']>()
  #running: Promise<ReadinessReport> | undefined
  #stopping = false

  constructor(checks: Readonly<Record<string, Check>>, { timeoutMs, dispensable = [], telemetry }: Options) {
    this.#checks = checks
    this.#timeoutMs = timeoutMs
    this.#dispensable = dispensable
    this.#telemetry = telemetry
  }

  /** From now on it is not ready, whatever the dependencies say: a load balancer looks elsewhere. */
  stop(): void {
    this.#stopping = true
  }

  get stopping(): boolean {
    return this.#stopping
  }

  async report(): Promise<ReadinessReport> {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async #run(): Promise<ReadinessReport> {
    const results = await Promise.all(
      Object.entries(this.#checks).map(async ([name, check]) => [name, await this.#one(name, check)] as const),
    )
    const missing = results.filter(([, { status }]) => status !== 'up').map(([name]) => name)
    const able = missing.every((name) => this.#dispensable.includes(name))
    const ready = able && !this.#stopping
    return { ready, degraded: ready && missing.length > 0, checks: Object.fromEntries(results) }
  }

  async #one(name: string, check: Check): Promise<CheckResult> {
    const started = performance.now()
    const failure = await withinMs(check(), this.#timeoutMs).then(
      () => undefined,
      (error: Error) => error,
    )
    const status = failure ? (HoldfastError.is(failure, 'reconcile_required') ? 'stopped' : 'away') : 'up'
    this.#tellChange(name, status, failure)
    return { status, durationMs: Math.round(performance.now() - started) }
  }

  /** The reason stands in the log, once, and not in the answer: anybody may ask, and addresses are nobody's business. */
  #tellChange(name: string, status: CheckResult['status'], failure: Error | undefined): void {
    const before = this.#lastStatus.get(name) ?? 'up'
    this.#lastStatus.set(name, status)
    if (status === before) return
    if (failure) this.#telemetry.log?.('warn', 'dependency_away', { dependency: name, reason: failure.message })
    else this.#telemetry.log?.('info', 'dependency_back', { dependency: name })
  }
}

async function withinMs(promise: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms)
  })
  try {
    await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
    // It may still fail later, and nobody listens then.
    promise.catch(() => {})
  }
}
