import { type AuditReport, type Holdfast, HoldfastError } from 'holdfast'

const RETRY_AFTER_S = 5

export interface AuditRequest {
  /** Undefined: all. */
  readonly shard?: number | undefined
  readonly full?: boolean | undefined
  readonly repair?: boolean | undefined
  readonly signal: AbortSignal
}

/** Audits that somebody asks for over HTTP: one at a time in each process, because each is work for both servers. */
export class RequestedAudits {
  readonly #holdfast: Holdfast
  readonly #repair: boolean
  readonly #tell: (report: AuditReport) => void
  #closing = false
  /** Ends the one that is under way; undefined: none is. */
  #end: (() => void) | undefined

  /** `repair`: whether anything may be put right at all. `tell`: who hears of what is found, as of audits that run by themselves. */
  constructor(holdfast: Holdfast, repair: boolean, tell: (report: AuditReport) => void) {
    this.#holdfast = holdfast
    this.#repair = repair
    this.#tell = tell
  }

  async run({ shard, full = false, repair = true, signal }: AuditRequest): Promise<AuditReport> {
    if (this.#closing) throw stopping()
    if (this.#end) {
      throw new HoldfastError('rate_limited', 'Expected one audit at a time, got one more', {
        retryAfter: RETRY_AFTER_S,
      })
    }
    const over = new AbortController()
    const end = () => over.abort()
    this.#end = end
    if (signal.aborted) end()
    signal.addEventListener('abort', end, { once: true })
    try {
      const report = await this.#holdfast.audit({
        ...(shard !== undefined && { shards: [shard] }),
        full,
        repair: repair && this.#repair,
        signal: over.signal,
      })
      this.#tell(report)
      return report
    } catch (error) {
      throw this.#closing ? stopping() : inWordsOfTheRequest(error)
    } finally {
      signal.removeEventListener('abort', end)
      this.#end = undefined
    }
  }

  /** A stop waits for all that is being answered, and an audit may take long. */
  stop(): void {
    this.#closing = true
    this.#end?.()
  }
}

/** It asked for one shard, and the library was asked for some. */
function inWordsOfTheRequest(error: unknown): unknown {
  if (!HoldfastError.is(error, 'invalid_argument')) return error
  const message = error.message.replace(/^shards:/, 'body.shard:')
  return new HoldfastError('invalid_argument', message, { argument: 'body.shard' })
}

const stopping = (): HoldfastError => new HoldfastError('unavailable', 'The server is stopping')
