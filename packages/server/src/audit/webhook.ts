import { createHmac, randomUUID } from 'node:crypto'
import type { AuditReport, Finding } from 'holdfast'
import type { ServerTelemetry } from '../metrics/index.js'
import { FindingsNews, nameOf } from './news.js'

/** The body is signed together with the time, so that nobody can send it again later as if it were news. */
const SIGNATURE_HEADER = 'holdfast-signature'

/** Findings a message; deliveries waiting. */
const FINDINGS_MAX = 100
const WAITING_MAX = 100

export interface WebhookSettings {
  url: string
  secret: string
  telemetry: ServerTelemetry
  /** Tries in all, and how long to wait between them: anything up to twice as long each time. */
  triesMax?: number
  backoffMs?: number
  backoffMaxMs?: number
  timeoutMs?: number
}

interface Message {
  id: string
  body: string
  /** What it tells of: told again with the next audit, if this message never arrives. */
  names: readonly string[]
}

/** Tells an address of findings: signed, one message at a time, and again when it does not answer with a yes. */
export class FindingsWebhook {
  readonly #settings: Required<WebhookSettings>
  readonly #url: URL
  readonly #headers: Readonly<Record<string, string>>
  readonly #waiting: Message[] = []
  readonly #news = new FindingsNews()
  readonly #stop = new AbortController()
  #working: Promise<void> | undefined

  constructor(settings: WebhookSettings) {
    this.#settings = { triesMax: 8, backoffMs: 1_000, backoffMaxMs: 60_000, timeoutMs: 10_000, ...settings }
    this.#url = new URL(settings.url)
    const { username, password } = this.#url
    // `fetch` takes no address with a name and a password in it.
    Object.assign(this.#url, { username: '', password: '' })
    const credentials = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString(
      'base64',
    )
    this.#headers = {
      'content-type': 'application/json',
      ...((username || password) && { authorization: `Basic ${credentials}` }),
    }
  }

  /** Never throws and never waits. */
  push({ findings }: AuditReport): void {
    const news = findings.filter((finding) => this.#news.isNews(finding))
    for (let at = 0; at < news.length; at += FINDINGS_MAX) this.#add(news.slice(at, at + FINDINGS_MAX))
    this.#work()
  }

  #work(): void {
    if (this.#working || this.#waiting.length === 0 || this.#stop.signal.aborted) return
    this.#working = this.#deliverAll().finally(() => {
      this.#working = undefined
      // What came when the last one was just done.
      this.#work()
    })
  }

  #add(findings: readonly Finding[]): void {
    const names = findings.map(nameOf)
    if (this.#waiting.length >= WAITING_MAX) return this.#end(names, 'dropped')
    const id = randomUUID()
    const body = JSON.stringify({ id, event: 'audit.findings', at: new Date().toISOString(), findings })
    this.#waiting.push({ id, body, names })
  }

  /** What nobody was told of is news for as long as it stays. */
  #end(names: readonly string[], outcome: 'delivered' | 'failed' | 'dropped'): void {
    this.#settings.telemetry.count('webhook_deliveries_total', { outcome })
    if (outcome !== 'delivered') this.#news.forget(names)
  }

  async #deliverAll(): Promise<void> {
    for (let next = this.#waiting.shift(); next && !this.#stop.signal.aborted; next = this.#waiting.shift()) {
      const delivered = await this.#deliver(next)
      this.#end(next.names, delivered ? 'delivered' : this.#stop.signal.aborted ? 'dropped' : 'failed')
    }
  }

  async #deliver({ id, body }: Message): Promise<boolean> {
    const { triesMax, backoffMs, backoffMaxMs, telemetry } = this.#settings
    let reason = ''
    for (let attempt = 1; attempt <= triesMax && !this.#stop.signal.aborted; attempt += 1) {
      if (attempt > 1) {
        // Some of it is chance: those who were turned away together must not come back together.
        await this.#sleep((0.5 + Math.random() / 2) * Math.min(backoffMaxMs, backoffMs * 2 ** (attempt - 2)))
      }
      reason = await this.#send(id, body).catch(reasonOf)
      if (reason === '') return true
    }
    if (this.#stop.signal.aborted) return false
    telemetry.log?.('error', 'webhook_failed', { id, tries: triesMax, reason })
    return false
  }

  /** Empty: it was taken. Otherwise why not. */
  async #send(id: string, body: string): Promise<string> {
    const { secret, timeoutMs } = this.#settings
    const timeout = new AbortController()
    const end = (): void => timeout.abort()
    const timer = setTimeout(end, timeoutMs)
    this.#stop.signal.addEventListener('abort', end, { once: true })
    try {
      const response = await fetch(this.#url, {
        method: 'POST',
        // Elsewhere is not where the operator wanted it told.
        redirect: 'error',
        headers: {
          ...this.#headers,
          'holdfast-delivery': id,
          [SIGNATURE_HEADER]: signatureOf(secret, Math.floor(Date.now() / 1_000), body),
        },
        body,
        signal: timeout.signal,
      })
      await response.body?.cancel()
      return response.ok ? '' : `status ${response.status}`
    } finally {
      clearTimeout(timer)
      this.#stop.signal.removeEventListener('abort', end)
    }
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer)
        this.#stop.signal.removeEventListener('abort', end)
        resolve()
      }
      const timer = setTimeout(end, ms)
      this.#stop.signal.addEventListener('abort', end, { once: true })
    })
  }

  /** What is still waiting is found again by the next audit, if it is still so. */
  async close(): Promise<void> {
    this.#stop.abort()
    await this.#working
  }
}

/** `fetch` itself only says that it failed. */
function reasonOf(error: Error & { cause?: { code?: string; message?: string } }): string {
  if (error.name === 'AbortError') return 'no answer in time'
  return error.cause?.code ?? error.cause?.message ?? error.name
}

/** `t=<seconds since 1970>,v1=<HMAC-SHA256 of "<t>.<body>" in hexadecimal>` */
export function signatureOf(secret: string, seconds: number, body: string): string {
  const digest = createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')
  return `t=${seconds},v1=${digest}`
}
