/** A process with an engine of its own, and a crowd in it. */
import { randomUUID } from 'node:crypto'
import { type ConnectOptions, Holdfast, HoldfastError } from '../../../src/index.js'
import type { Bought, Order, Rush, Stampede, Told } from './orders.js'

const hf = await Holdfast.connect(JSON.parse(process.argv[2] as string) as ConnectOptions)

const tell = (told: Told) => new Promise<void>((resolve) => process.send?.(told, () => resolve()))

/** Who stops before the limit does. */
const MODEST = 3

const bought: Bought[] = []
const refused: Record<string, number> = {}

/** Whatever is not known is asked again under the same key, as long as it takes. */
async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (!HoldfastError.is(error) || !error.retryable) throw error
    }
  }
}

/** Null: refused, and counted. */
async function buy(sale: string, user: string, item: string): Promise<string | null> {
  try {
    const key = randomUUID()
    const { code } = await patiently(() => hf.sale(sale).checkout({ user, items: [{ id: item }], key }))
    const { items } = await patiently(() => hf.sale(sale).purchase(code))
    for (const { id, quantity } of items) for (let n = 0; n < quantity; n += 1) bought.push({ user, item: id, code })
    return null
  } catch (error) {
    if (!HoldfastError.is(error)) throw error
    refused[error.code] = (refused[error.code] ?? 0) + 1
    return error.code
  }
}

async function stampede({ sale, users, first, step, items, callers }: Stampede): Promise<void> {
  const wanted = [...items]
  let next = first
  const caller = async () => {
    for (let user = next; user < users && wanted.length > 0; user = next) {
      next += step
      const most = user % 2 === 0 ? Number.POSITIVE_INFINITY : MODEST
      for (let had = 0; had < most; ) {
        const item = wanted.shift()
        if (item === undefined) return
        const why = await buy(sale, `user-${user}`, `item-${item}`)
        if (why === null) had += 1
        if (why !== 'user_limit') continue
        wanted.unshift(item)
        break
      }
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
}

async function rush({ sale, users, item }: Rush): Promise<void> {
  await Promise.all(users.map((user) => buy(sale, user, item)))
}

process.on('message', (order: Order) => {
  const work = async () => {
    if (order.type === 'close') {
      await hf.close()
      await tell({ type: 'closed' })
      return process.disconnect()
    }
    if (order.type === 'stampede') await stampede(order)
    else if (order.type === 'rush') await rush(order)
    else {
      const { sale, user, item, key } = order
      await hf.sale(sale).checkout({ user, items: [{ id: item }], key })
    }
    await tell({ type: 'done', bought: bought.splice(0), refused })
  }
  void work()
})
// A parent that is gone wants nothing more.
process.on('disconnect', () => void hf.close())
await tell({ type: 'ready' })
