import { type AuditReport, type BackgroundAudit, Holdfast } from 'holdfast'
import { FeatureFlags, KeySampler, Primitives } from 'holdfast/primitives'
import { ApiKeys, Gate } from '../access/index.js'
import { FindingsNews, FindingsWebhook, RequestedAudits } from '../audit/index.js'
import { EventHub, type EventSettings } from '../events/index.js'
import type { ServerTelemetry } from '../metrics/index.js'
import { type SaleSettings, ScheduleDriver, saleOptionsOf } from '../sales/index.js'
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
  schedules: ScheduleDriver
  /** Feature flags of a tenant, to look after them. */
  flagsOf(tenant: string): FeatureFlags
  /** Answers what is under way. The connections belong to others. */
  close(): Promise<void>
}

export interface BackendSettings extends SaleSettings {
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
  /** How long the walk over all keys of Redis rests between its steps. 0: there is none. */
  keySampleMs: number
  /** That webhooks may be at although they are inside, or without TLS. */
  webhookHosts?: readonly string[] | undefined
  /** For tests. */
  streams?: Pick<EventSettings, 'heartbeatMs' | 'stallMs' | 'streamsMax'>
  deliveries?: Partial<DispatcherSettings>
  telemetry: ServerTelemetry
}

/** Whose the keys are that the server itself makes with primitives. */
const OWNER = 'holdfast'

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
  const primitives = await Primitives.connect({ redis, postgres, owner: OWNER, migrate: false, telemetry })
  const holdfast = await Holdfast.connect({
    redis,
    postgres,
    migrate: false,
    telemetry,
    audit: auditOf(settings, tell),
    ...saleOptionsOf(settings),
  }).catch(async (error) => {
    await primitives.close()
    throw error
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
    const sampler = samplerOf(primitives, settings)
    const schedules = new ScheduleDriver({ holdfast, postgres, telemetry }, settings.saleSchedulesMs)
    const close = async () => {
      sampler?.stop()
      await schedules.close()
      await Promise.all([holdfast.close(), webhook?.close(), dispatcher.close(), primitives.close()])
      await hub.close()
      await gate.close()
    }
    const audits = new RequestedAudits(holdfast, settings.auditRepair, tell)
    const flagsOf = (tenant: string) => new FeatureFlags(primitives.forTenant(tenant))
    return { holdfast, keys, gate, events: hub, webhooks, audits, schedules, flagsOf, close }
  } catch (error) {
    await Promise.all([holdfast.close(), primitives.close()])
    throw error
  }
}

/** Of the keys of all applications that share this Redis, not of ours alone. */
function samplerOf(primitives: Primitives, { keySampleMs: everyMs }: BackendSettings): KeySampler | null {
  if (everyMs === 0) return null
  const sampler = new KeySampler(primitives, { everyMs })
  sampler.start()
  return sampler
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
