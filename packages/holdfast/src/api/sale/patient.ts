import { HoldfastError } from '../../errors/index.js'
import { PostgresSales, type SaleItem, type SaleRow } from '../../journal/index.js'

const RETRIES = 3
const FIRST_PAUSE_MS = 50

/**
 * What a sale was opened with is read once and kept, by the first who needs it: a connection that is lost at that moment is no reason to turn
 * that one away. Three more tries, each after twice the pause; what fails then is told as it is.
 */
export class PatientSales extends PostgresSales {
  override read(tenant: string, id: string): Promise<SaleRow | null> {
    return patiently(() => super.read(tenant, id))
  }

  override items(...asked: Parameters<PostgresSales['items']>): Promise<SaleItem[]> {
    return patiently(() => super.items(...asked))
  }
}

async function patiently<T>(read: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await read()
    } catch (error) {
      if (tries === RETRIES || !HoldfastError.is(error, 'unavailable')) throw error
      const pauseMs = FIRST_PAUSE_MS * 2 ** tries * (0.5 + Math.random())
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }
}
