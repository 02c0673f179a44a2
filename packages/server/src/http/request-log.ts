import type { FastifyBaseLogger } from 'fastify'

type Arguments = [facts: object, event?: string]

/** The log of one request, made when there is something to say: most requests have one line, and that names the request itself. */
export class RequestLog {
  readonly #parent: FastifyBaseLogger
  readonly #facts: object
  #made: FastifyBaseLogger | undefined

  constructor(parent: FastifyBaseLogger, facts: object) {
    this.#parent = parent
    this.#facts = facts
  }

  get level(): string {
    return this.#parent.level
  }

  child(...given: Parameters<FastifyBaseLogger['child']>): FastifyBaseLogger {
    return this.#log().child(...given)
  }

  trace(...given: Arguments): void {
    this.#log().trace(...given)
  }

  debug(...given: Arguments): void {
    this.#log().debug(...given)
  }

  info(...given: Arguments): void {
    this.#log().info(...given)
  }

  warn(...given: Arguments): void {
    this.#log().warn(...given)
  }

  error(...given: Arguments): void {
    this.#log().error(...given)
  }

  fatal(...given: Arguments): void {
    this.#log().fatal(...given)
  }

  silent(): void {}

  #log(): FastifyBaseLogger {
    this.#made ??= this.#parent.child(this.#facts)
    return this.#made
  }
}
