import { type BackgroundAudit, Holdfast } from 'holdfast'
import { ApiKeys, Gate } from '../access/index.js'
import { FindingsWebhook } from '../audit/index.js'
import type { ServerTelemetry } from '../metrics/index.js'
import type { Connections } from './connections.js'

/** What requests are answered with: the one engine of this process, and who may use it. */
export interface Backend {
  holdfast: Holdfast
  keys: ApiKeys
  gate: Gate
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
  telemetry: ServerTelemetry
}

export async function openBackend({ redis, postgres }: Connections, settings: BackendSettings): Promise<Backend> {
  const { keyRate: rateMax, keyConcurrent: concurrentMax, telemetry } = settings
  const webhook = webhookOf(settings)
  const audit = auditOf(settings, webhook)
  // The schema was seen to when the connections were made.
  const holdfast = await Holdfast.connect({ redis, postgres, migrate: false, telemetry, audit })
  try {
    const keys = await ApiKeys.of(postgres)
    const gate = new Gate(keys, { telemetry, rateMax, concurrentMax })
    const close = async () => {
      await Promise.all([holdfast.close(), webhook?.close()])
      await gate.close()
    }
    return { holdfast, keys, gate, close }
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
  webhook: FindingsWebhook | null,
): BackgroundAudit | false {
  return every > 0 && { every, repair, onReport: (report) => webhook?.push(report) }
}
