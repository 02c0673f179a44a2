import { lookup } from 'node:dns'
import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type RequestOptions } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { hostOf, isPublic } from './address.js'
import { SIGNATURE_HEADER, signatureOf } from './signature.js'

export interface SignedPost {
  readonly url: string
  readonly secret: string
  /** The same for every try of one message. */
  readonly id: string
  readonly body: string
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** Whether it may lead to addresses that are not public. */
  readonly inside: boolean
}

/** Nobody reads it; so much is taken, so that the connection can be used again. */
const ANSWER_MAX_BYTES = 16 * 1024
const AGENT = { keepAlive: true, maxFreeSockets: 4, timeout: 30_000 } as const

/** Apart: a connection that was let inside must not be used again by one who is not. */
const agentsOf = () => ({ 'http:': new HttpAgent(AGENT), 'https:': new HttpsAgent(AGENT) })
const inside = agentsOf()
const outside = agentsOf()

/** Empty: it was taken, by an answer of 200 to 299. Otherwise why not. Goes nowhere else than it was told to: a redirect is a no. */
export async function postSigned(post: SignedPost): Promise<string> {
  const url = new URL(post.url)
  if (!post.inside && isIP(hostOf(url)) !== 0 && !isPublic(hostOf(url))) return NOT_PUBLIC
  if (post.signal.aborted) return 'stopped'
  return new Promise((resolve) => {
    const { body, id, secret, timeoutMs, signal } = post
    const options: RequestOptions = {
      method: 'POST',
      agent: (post.inside ? inside : outside)[url.protocol as keyof typeof inside],
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'user-agent': 'Holdfast',
        'holdfast-delivery': id,
        [SIGNATURE_HEADER]: signatureOf(secret, Math.floor(Date.now() / 1_000), body),
      },
      ...(!post.inside && { lookup: publicOnly }),
    }
    const sent: ClientRequest = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, options)
    const end = (outcome: string | Promise<string>): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
      resolve(outcome)
    }
    const giveUp = (outcome: string): void => {
      end(outcome)
      sent.destroy()
    }
    const stop = (): void => giveUp('stopped')
    // From the first to the last byte: who sends a byte now and then must not be waited for for ever.
    const timer = setTimeout(() => giveUp('no answer in time'), timeoutMs)
    signal.addEventListener('abort', stop, { once: true })
    sent.on('error', (error: NodeJS.ErrnoException) => {
      // A connection that was kept open, and closed by the other side just when it was to be used again.
      end(sent.reusedSocket && error.code === 'ECONNRESET' ? postSigned(post) : reasonOf(error))
    })
    sent.on('response', (response) => {
      const { statusCode = 0 } = response
      const outcome = statusCode >= 200 && statusCode < 300 ? '' : `status ${statusCode}`
      let bytes = 0
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > ANSWER_MAX_BYTES) giveUp(outcome)
      })
      response.on('end', () => end(outcome))
      response.on('error', () => end(outcome))
    })
    sent.end(body)
  })
}

const NOT_PUBLIC = 'the address is not public'

class NotPublic extends Error {}

/** What a name leads to is looked at where it is connected to: between two looks it could lead elsewhere. */
const publicOnly: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error) callback(error, [])
    else if (addresses.some(({ address }) => !isPublic(address))) callback(new NotPublic(), [])
    else if (options.all) callback(null, addresses)
    else callback(null, addresses[0]?.address ?? '', addresses[0]?.family)
  })
}

/** By its code: a message can tell what is inside. */
function reasonOf(error: NodeJS.ErrnoException): string {
  if (error instanceof NotPublic) return NOT_PUBLIC
  return error.code ?? error.name
}
