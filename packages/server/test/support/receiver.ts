/** Who webhooks tell: a server that answers as a test wants, and checks signatures as the guide says. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll } from 'vitest'

export interface Received {
  at: number
  headers: IncomingHttpHeaders
  raw: string
  // biome-ignore lint/suspicious/noExplicitAny: what a server sent, which is what the tests are about
  body: any
}

const open: Receiver[] = []
afterAll(async () => {
  for (const receiver of open.splice(0)) await receiver.close()
})

export class Receiver {
  readonly received: Received[] = []
  /** What was answered with 200 to 299. */
  readonly taken: Received[] = []
  /** What it answers: a status; 0 for nothing at all. */
  answer: (received: Received, response: ServerResponse) => number = () => 204
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
  }

  static async start(): Promise<Receiver> {
    const server = createServer()
    const receiver = new Receiver(server)
    server.on('request', async (request, response) => {
      const chunks: Buffer[] = []
      try {
        for await (const chunk of request) chunks.push(chunk)
      } catch {
        // Whoever sent it was gone before all of it was here.
        return
      }
      const raw = String(Buffer.concat(chunks))
      const received = { at: performance.now(), headers: request.headers, raw, body: JSON.parse(raw) }
      receiver.received.push(received)
      const status = receiver.answer(received, response)
      if (status === 0) return
      if (status < 300) receiver.taken.push(received)
      if (!response.headersSent) response.writeHead(status)
      response.end()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    open.push(receiver)
    return receiver
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/holdfast`
  }

  async until(done: (receiver: Receiver) => boolean): Promise<void> {
    while (!done(this)) await new Promise((resolve) => setTimeout(resolve, 5))
  }

  /** The seqs of the entries of a wallet, as they were taken. */
  seqs(wallet: string): number[] {
    return this.taken.filter(({ body }) => body.wallet === wallet && body.entry).map(({ body }) => body.entry.seq)
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
  }
}

export function isSigned({ headers, raw }: Received, secret: string): boolean {
  const [, t = '', v1 = ''] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['holdfast-signature'])) ?? []
  const expected = createHmac('sha256', secret).update(`${t}.${raw}`).digest()
  const fresh = Math.abs(Date.now() / 1_000 - Number(t)) < 300
  return fresh && timingSafeEqual(Buffer.from(v1, 'hex'), expected)
}
