/** A process that takes the lock of a wallet and keeps it until it is told to let go, or loses it. It tells its parent of each. */
import { type ConnectOptions, Holdfast, HoldfastError } from '../../../src/index.js'
import type { Told } from './holders.js'

const [options, walletId, ttl] = process.argv.slice(2) as [string, string, string]
const hf = await Holdfast.connect(JSON.parse(options) as ConnectOptions)
const tell = (told: Told) => new Promise<void>((resolve) => process.send?.(told, () => resolve()))
const toldToLetGo = new Promise<void>((resolve) => process.once('message', () => resolve()))

const work = hf.wallet(walletId).exclusive(
  async ({ token, signal }) => {
    await tell({ type: 'held', token })
    await Promise.race([toldToLetGo, new Promise((resolve) => signal.addEventListener('abort', resolve))])
    signal.throwIfAborted()
  },
  { ttl: Number(ttl) },
)
await work.then(
  () => tell({ type: 'released' }),
  (error) => tell({ type: 'lost', code: error instanceof HoldfastError ? error.code : String(error) }),
)
await hf.close()
process.disconnect()
