import type { ConnectOptions } from 'holdfast'

/** What a server is told about sales. */
export interface SaleSettings {
  /** How long attempts in sales are on record. 0: none are. */
  saleAttemptsKeepMs: number
  /** How often it looks for schedules of which a slot is due soon. 0: it opens none. */
  saleSchedulesMs: number
  /** How checkouts of what is sold are refused without asking Redis. */
  saleEarlyReject: 'bitmap' | 'bloom' | 'off'
  saleEarlyRejectMs: number
  saleBloomItems?: number | undefined
  saleBloomRate: number
}

/** The same, as the library is told. */
export function saleOptionsOf(settings: SaleSettings): Pick<ConnectOptions, 'saleAttempts' | 'earlyReject'> {
  const { saleAttemptsKeepMs: retentionMs, saleEarlyReject: by, saleBloomItems: capacity } = settings
  const { saleEarlyRejectMs: every, saleBloomRate: falsePositives } = settings
  return {
    saleAttempts: retentionMs > 0 && { retentionMs },
    earlyReject: by !== 'off' && { by, every, falsePositives, ...(capacity !== undefined && { capacity }) },
  }
}
