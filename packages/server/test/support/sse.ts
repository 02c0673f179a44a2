/** A reader of server-sent events as a client has one: it parses the stream by the rules, and remembers the last id. */

export interface Told {
  id: string
  event: string
  // biome-ignore lint/suspicious/noExplicitAny: what a server sent, which is what the tests are about
  data: any
}

export class EventReader {
  readonly events: Told[] = []
  lastEventId = ''
  heartbeats = 0
  ended = false
  status = 0
  contentType = ''
  // biome-ignore lint/suspicious/noExplicitAny: the answer of a server that refused
  problem: any
  readonly #abort = new AbortController()
  #reading: Promise<void> = Promise.resolve()

  static async open(
    url: string,
    credential: string,
    { path = '/v1/events', lastEventId }: { path?: string; lastEventId?: string | undefined } = {},
  ): Promise<EventReader> {
    const reader = new EventReader()
    const response = await fetch(`${url}${path}`, {
      headers: {
        authorization: `Bearer ${credential}`,
        ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
      },
      signal: reader.#abort.signal,
    })
    reader.status = response.status
    reader.contentType = response.headers.get('content-type') ?? ''
    if (response.status !== 200) reader.problem = await response.json()
    else reader.#reading = reader.#read(response.body as ReadableStream<Uint8Array>)
    return reader
  }

  /** Resolves when as many events came. */
  async until(done: (events: Told[]) => boolean): Promise<Told[]> {
    while (!done(this.events)) {
      if (this.ended) throw new Error(`The stream ended after ${this.events.length} events`)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    return this.events
  }

  /** As a network does: in the middle of whatever there is. */
  async cut(): Promise<void> {
    this.#abort.abort()
    await this.#reading
  }

  async end(): Promise<void> {
    await this.#reading
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder()
    let text = ''
    try {
      for await (const chunk of body) {
        text += decoder.decode(chunk, { stream: true })
        for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
          this.#take(text.slice(0, end).split('\n'))
          text = text.slice(end + 2)
        }
      }
    } catch (error) {
      if (!this.#abort.signal.aborted && !(error instanceof TypeError)) throw error
    } finally {
      this.ended = true
    }
  }

  #take(lines: readonly string[]): void {
    const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2)
    const id = field('id')
    if (id !== undefined) this.lastEventId = id
    if (lines.includes(': ')) this.heartbeats += 1
    const data = field('data')
    if (data === undefined) return
    this.events.push({ id: this.lastEventId, event: field('event') ?? 'message', data: JSON.parse(data) })
  }
}
