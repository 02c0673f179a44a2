import { type AuditReport, type BackgroundAudit, Holdfast } from 'holdfast'
import { ApiKeys, Gate } from '../access/index.js'
import { FindingsNews, FindingsWebhook, RequestedAudits } from '../audit/index.js'
import { EventHub, type EventSettings } from '../events/index.js'
import type { ServerTelemetry } from '../metrics/index.js'
import { type DispatcherSettings, WebhookDispatcher, Webhooks } from '../webhooks/index.js'
import type { Connections } from './connections.js'

/** What requests are answered with: the one engine of this process, and who may use it. */
export interface Backend {
  holdfast: Holdfast
  keys: ApiKeys
  gate: Gate
  events: EventHub
  webhooks: Webhooks
  audits: RequestedAudits
  /** Answers what is under way. The connections belong to others. */
  close(): Promise<void>
}

export interface BackendSettings {
  keyRate: number
  keyConcurrent: number
  /** 0: no audits in the background. */
  auditIntervalMs: number
  auditRepair: boolean
  auditWebhookUrl?: string | undefined
  auditWebhookSecret?: string | undefined
  eventsKeepMs: number
  /** 0: holds that are about to expire are not told of. */
  eventsExpiringMs: number
  /** That webhooks may be at although they are inside, or without TLS. */
  webhookHosts?: readonly string[] | undefined
  /** For tests. */
  streams?: Pick<EventSettings, 'heartbeatMs' | 'stallMs' | 'streamsMax'>
  deliveries?: Partial<DispatcherSettings>
  telemetry: ServerTelemetry
}

export async function openBackend({ redis, postgres }: Connections, settings: BackendSettings): Promise<Backend> {
  const { keyRate: rateMax, keyConcurrent: concurrentMax, telemetry } = settings
  const webhook = webhookOf(settings)
  const news = new FindingsNews()
  let events: EventHub | undefined
  const tell = (report: AuditReport): void => {
    webhook?.push(report)
    events?.noteFindings(report.findings.filter((finding) => news.isNews(finding)))
  }
  // The schema was seen to when the connections were made.
  const holdfast = await Holdfast.connect({
    redis,
    postgres,
    migrate: false,
    telemetry,
    audit: auditOf(settings, tell),
  })
  try {
    const keys = await ApiKeys.of(postgres)
    const gate = new Gate(keys, { telemetry, rateMax, concurrentMax })
    const hub = new EventHub(
      { postgres, secret: keys.secret, gate, telemetry },
      { keepMs: settings.eventsKeepMs, expiringMs: settings.eventsExpiringMs, ...settings.streams },
    )
    events = hub
    const allowed = new Set(settings.webhookHosts)
    const webhooks = new Webhooks(postgres, keys.secret, allowed, settings.eventsKeepMs)
    const dispatcher = new WebhookDispatcher({ postgres, hub, webhooks, allowed, telemetry }, settings.deliveries)
    const close = async () => {
      await Promise.all([holdfast.close(), webhook?.close(), dispatcher.close()])
      await hub.close()
      await gate.close()
    }
    const audits = new RequestedAudits(holdfast, settings.auditRepair, tell)
    return { holdfast, keys, gate, events: hub, webhooks, audits, close }
  } catch (error) {
    await holdfast.close()
    throw error
  }
}

function webhookOf({ auditWebhookUrl: url, auditWebhookSecret: secret, telemetry }: BackendSettings) {
  return url && secret ? new FindingsWebhook({ url, secret, telemetry }) : null
}

function auditOf(
  { auditIntervalMs: every, auditRepair: repair }: BackendSettings,
  onReport: NonNullable<BackgroundAudit['onReport']>,
): BackgroundAudit | false {
  return every > 0 && { every, repair, onReport }
}
