import { randomUUID } from 'node:crypto'
import type { AuditReport, Finding } from 'holdfast'
import type { ServerTelemetry } from '../metrics/index.js'
import { backoffMs as pauseOf, postSigned } from '../webhooks/index.js'
import { FindingsNews, nameOf } from './news.js'

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
  readonly #waiting: Message[] = []
  readonly #news = new FindingsNews()
  readonly #stop = new AbortController()
  #working: Promise<void> | undefined

  constructor(settings: WebhookSettings) {
    this.#settings = { triesMax: 8, backoffMs: 1_000, backoffMaxMs: 60_000, timeoutMs: 10_000, ...settings }
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
    const { url, secret, timeoutMs, triesMax, backoffMs, backoffMaxMs, telemetry } = this.#settings
    let reason = ''
    for (let attempt = 1; attempt <= triesMax && !this.#stop.signal.aborted; attempt += 1) {
      if (attempt > 1) {
        await this.#sleep(pauseOf(attempt - 1, backoffMs, backoffMaxMs))
      }
      // Where the operator said: inside or not is theirs to choose.
      reason = await postSigned({ url, secret, id, body, timeoutMs, signal: this.#stop.signal, inside: true })
      if (reason === '') return true
    }
    if (this.#stop.signal.aborted) return false
    telemetry.log?.('error', 'webhook_failed', { id, tries: triesMax, reason })
    return false
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
