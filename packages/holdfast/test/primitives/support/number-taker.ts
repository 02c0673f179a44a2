/** A process that takes numbers of a strict sequence, several at a time, and tells its parent each that it was given, until it is killed. */
import { Primitives, StrictSequence } from '../../../src/primitives/index.js'
import type { Order } from './number-takers.js'
import { PATIENT } from './patient.js'

const { redis, postgres, operation, blockSize } = JSON.parse(process.argv[2] as string) as Order
const primitives = await Primitives.connect({ redis, postgres, ...PATIENT })
const invoices = new StrictSequence(primitives, operation, { blockSize })
const tell = (number: number) => new Promise<void>((resolve) => process.send?.(number, () => resolve()))

async function take(): Promise<never> {
  for (;;) await tell(await invoices.next('invoices'))
}
await Promise.all([take(), take(), take()])
