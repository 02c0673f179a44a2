/** Callers who hold and settle over HTTP without rest, each on wallets of its own, through whichever server is there. */
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Acknowledged {
  readonly wallet: string
  readonly key: string
  readonly seq: number
  readonly hash: string
}

interface Entry {
  readonly seq: number
  readonly hash: string
}

interface Answer {
  readonly status: number
  readonly body: { code?: string; retryable?: boolean; entry?: Entry; receipt?: { entry: Entry } }
}

interface LoadOptions {
  readonly urls: readonly string[]
  readonly apiKey: string
  readonly wallets: readonly string[]
  /** Whether what failed is sent again, with the same key, to another server. */
  readonly retries: boolean
}

const PROBE_MS = 50
/** Those of some seconds: a server that is there may stand still for a moment. */
const TRIES_MAX = 1_000

export class Load {
  readonly acknowledged: Acknowledged[] = []
  /** What callers were told that was no yes: without retries all of it, with them what was given up in the end. */
  readonly failures: string[] = []
  /** Requests that got no answer, or one that says to try again. */
  repeated = 0
  /** Those that look ready; a balancer would choose among them. */
  #ready: string[]
  readonly #options: LoadOptions
  readonly #agent = new Agent({ keepAlive: true })
  #stopped = false
  #turn = 0

  constructor(options: LoadOptions) {
    this.#options = options
    this.#ready = [...options.urls]
  }

  /** Runs until it is stopped. */
  async run(): Promise<void> {
    const callers = this.#options.wallets.map((wallet, index) => this.#caller(wallet, index))
    const probes = this.#options.urls.map((url) => this.#probe(url))
    await Promise.all([...callers, ...probes])
    this.#agent.destroy()
  }

  stop(): void {
    this.#stopped = true
  }

  async #caller(wallet: string, index: number): Promise<void> {
    for (let round = 0; !this.#stopped; round += 1) {
      const hold = `${index}-${round}`
      const path = `/v1/wallets/${wallet}/holds`
      await this.#move(wallet, path, hold, { amount: 2, ttl: 600_000 })
      await this.#move(wallet, `${path}/${hold}/settle`, `${hold}-end`, { total: 1 })
    }
  }

  async #move(wallet: string, path: string, key: string, body: object): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      const outcome = await this.#post(this.#next(), path, key, body).catch((error: NodeJS.ErrnoException) => error)
      if (!(outcome instanceof Error) && outcome.status === 200) {
        const { seq, hash } = outcome.body.receipt?.entry ?? (outcome.body.entry as Entry)
        this.acknowledged.push({ wallet, key, seq, hash })
        return
      }
      const again = outcome instanceof Error || outcome.body.retryable === true
      if (!this.#options.retries || !again || tries === TRIES_MAX) {
        this.failures.push(outcome instanceof Error ? `${outcome.code}` : `${outcome.status} ${outcome.body.code}`)
        return
      }
      this.repeated += 1
      await sleep(20)
    }
  }

  #next(): string {
    const urls = this.#ready.length > 0 ? this.#ready : this.#options.urls
    this.#turn += 1
    return urls[this.#turn % urls.length] as string
  }

  async #probe(url: string): Promise<void> {
    while (!this.#stopped) {
      const ready = await fetch(`${url}/health/ready`).then(
        ({ status }) => status === 200,
        () => false,
      )
      this.#ready = this.#options.urls.filter((one) => (one === url ? ready : this.#ready.includes(one)))
      await sleep(PROBE_MS)
    }
  }

  #post(url: string, path: string, key: string, body: object): Promise<Answer> {
    const headers = {
      authorization: `Bearer ${this.#options.apiKey}`,
      'content-type': 'application/json',
      'idempotency-key': key,
    }
    return new Promise((resolve, reject) => {
      // Unlike fetch it never sends a request again by itself: what fails is seen.
      const sent = request(`${url}${path}`, { method: 'POST', agent: this.#agent, headers }, (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk) => (text += chunk))
        response.on('error', reject)
        response.on('end', () => resolve({ status: response.statusCode as number, body: JSON.parse(text) }))
      })
      sent.on('error', reject)
      sent.end(JSON.stringify(body))
    })
  }
}
