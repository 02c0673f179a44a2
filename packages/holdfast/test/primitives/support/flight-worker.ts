/** A process that begins to load a value, tells so, and never ends; or that gets one and tells what it got. */
import { Primitives, SingleFlight } from '../../../src/primitives/index.js'
import { PATIENT } from './patient.js'

const { url, hangs, name, markerMs } = JSON.parse(process.argv[2] as string) as {
  url: string
  hangs: boolean
  name: string
  markerMs: number
}
const tell = (message: unknown) => new Promise<void>((resolve) => process.send?.(message, () => resolve()))
const primitives = await Primitives.connect({ redis: url, secret: 'a secret of tests, long enough', ...PATIENT })
const flight = new SingleFlight(primitives, 'price', { markerMs, waitMs: 60_000, loadMaxMs: 600_000 })
const { value } = await flight.get('a', async () => {
  await tell({ loads: name })
  if (hangs) await new Promise(() => setInterval(() => {}, 1_000))
  return name
})
await tell({ got: value })
await primitives.close()
process.disconnect()
