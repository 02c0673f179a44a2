/**
 * A process with an engine of its own. It does what it is ordered to and tells its parent before and after each operation, so that
 * whatever becomes of it, the parent knows what was begun and what was answered.
 */
import { type ConnectOptions, Holdfast, HoldfastError, type Receipt } from '../../../src/index.js'
import { type Operation, type Order, type Outcome, operation, randomFrom, type Told } from './operations.js'

const hf = await Holdfast.connect(JSON.parse(process.argv[2] as string) as ConnectOptions)

/** Resolves when it has left this process: what is begun is known even if the next instruction is the last. */
const tell = (told: Told) => new Promise<void>((resolve) => process.send?.(told, () => resolve()))

async function perform(asked: Operation, options: { retry?: boolean; durability?: 'memory' }): Promise<Receipt> {
  const wallet = hf.wallet(asked.wallet)
  const { key, amount, ttl, beyond } = asked
  const hold = wallet.holdRef(asked.hold === '' ? 'none' : asked.hold)
  switch (asked.kind) {
    case 'credit':
      return wallet.credit(amount, { key, ...options })
    case 'debit':
      return wallet.debit(amount, { key, ...options })
    case 'hold':
      return (await wallet.hold(amount, { key, ttl, ...options })).receipt
    case 'capture':
      return hold.capture(amount, { key, beyond, ...options })
    case 'extend':
      return hold.extend({ key, amount, ttl, ...options })
    case 'settle':
      return hold.settle(amount, { key, beyond, ...options })
    case 'release':
      return hold.release({ key, ...options })
    case 'refund':
      return wallet.refund(asked.of, amount, { key, ...options })
  }
}

async function attempt(asked: Operation, options: { retry?: boolean; durability?: 'memory' } = {}): Promise<Outcome> {
  await tell({ type: 'begin', operation: asked })
  let outcome: Outcome
  try {
    const { entry, available, reserved, replayed } = await perform(asked, options)
    outcome = { type: 'yes', seq: entry.seq, hash: entry.hash, available, reserved, replayed }
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error
    outcome = { type: error.retryable ? 'unknown' : 'no', code: error.code }
  }
  await tell({ type: 'end', operation: asked, outcome })
  return outcome
}

/** Several callers, each with one operation at a time, on the wallets that other processes use as well. */
async function random(order: Extract<Order, { type: 'random' }>): Promise<void> {
  const chance = randomFrom(order.seed)
  const below = (n: number) => Math.floor(chance() * n)
  const pick = <T>(list: readonly T[]): T => list[below(list.length)] as T
  const done: Operation[] = []
  const charges: { wallet: string; seq: number }[] = []
  let made = 0

  const next = (): Operation => {
    made += 1
    const key = `${order.name}-${made}`
    const walletOf = (n: number) => order.wallets[n % order.wallets.length] as string
    const kinds = [
      'credit',
      'debit',
      'hold',
      'hold',
      'hold',
      'capture',
      'capture',
      'extend',
      'settle',
      'settle',
      'release',
      'refund',
    ] as const
    const kind = pick(kinds)
    // A hold is the key of an operation: this process's or another's, whether it was a hold or not. Its number tells the wallet.
    const number = Math.max(1, made - below(12))
    const hold = `${pick([order.name, ...order.others])}-${number}`
    const wallet = walletOf(['credit', 'debit', 'hold'].includes(kind) ? made : number)
    const charge = charges.length > 0 ? pick(charges) : { wallet, seq: 1 + below(20) }
    switch (kind) {
      case 'credit':
      case 'debit':
        return operation({ wallet, kind, key, amount: 1 + below(40) })
      case 'hold':
        return operation({ wallet, kind, key, hold: key, amount: 1 + below(40), ttl: pick([5, 50, 400, 4_000]) })
      case 'extend':
        return operation({ wallet, kind, key, hold, amount: 1 + below(10), ttl: pick([20, 500]) })
      case 'refund':
        return operation({ wallet: charge.wallet, kind, key, of: charge.seq, amount: 1 + below(20) })
      default:
        return operation({
          wallet,
          kind,
          key,
          hold,
          amount: 1 + below(40),
          beyond: pick(['reject', 'available'] as const),
        })
    }
  }

  const caller = async () => {
    while (made < order.count) {
      const repeat = done.length > 0 && chance() < 0.05
      // Mostly one that Redis still remembers; looking an older one up costs the wallet an epoch.
      const asked = repeat ? pick(chance() < 0.9 ? done.slice(-10) : done) : next()
      let outcome = await attempt(asked)
      for (let retry = 0; outcome.type === 'unknown' && retry < 5; retry += 1)
        outcome = await attempt(asked, { retry: true })
      if (outcome.type !== 'yes') continue
      done.push(asked)
      if (asked.kind === 'debit' || asked.kind === 'capture' || asked.kind === 'settle') {
        charges.push({ wallet: asked.wallet, seq: outcome.seq })
      }
    }
  }
  await Promise.all(Array.from({ length: order.callers }, caller))
}

async function* units() {
  for (let total = 1; ; total += 1) {
    await new Promise((resolve) => setTimeout(resolve, 1))
    await tell({ type: 'units', total })
    yield total
  }
}

async function stream({ wallet, key, terms }: Extract<Order, { type: 'stream' }>): Promise<void> {
  const session = await hf.wallet(wallet).meter({ ...terms, key })
  for await (const total of session.stream(units(), { every: 1 })) if (total === 100_000) return
}

async function ticks({ wallet, session, totals }: Extract<Order, { type: 'ticks' }>): Promise<void> {
  const metered = hf.wallet(wallet).sessionRef(session)
  for (const total of totals) {
    await tell({ type: 'units', total })
    // One that got no answer is made good by the next.
    await metered.tick({ total }).catch((error: unknown) => {
      if (!HoldfastError.is(error) || !error.retryable) throw error
    })
  }
}

process.on('message', (order: Order) => {
  const work = async () => {
    if (order.type === 'random') {
      await random(order)
      await tell({ type: 'done' })
    } else if (order.type === 'stream') {
      await stream(order)
    } else if (order.type === 'ticks') {
      await ticks(order)
      await tell({ type: 'done' })
    } else if (order.type === 'one') {
      await attempt(order.operation, order.durability ? { durability: order.durability } : {})
    } else if (order.type === 'purchase') {
      const { sale, code, take, wallet, price } = order.purchase
      await hf.sale(sale).purchase(code, { take, pay: { wallet, price } })
      await tell({ type: 'done' })
    } else if (order.type === 'transfer') {
      const { from, to, amount, fee, key } = order.transfer
      await hf.transfer(from, to, amount, { fee, key })
      await tell({ type: 'done' })
    } else {
      await hf.close()
      await tell({ type: 'closed' })
      process.disconnect()
    }
  }
  void work()
})
// A parent that is gone wants nothing more.
process.on('disconnect', () => void hf.close())
await tell({ type: 'ready' })
