import { type Holdfast, HoldfastError, type Wallet } from 'holdfast'
import { type Answer, type Asked, told } from './history.js'

/** Asks the product, as anybody would, and says what it answered. */
export async function perform(hf: Holdfast, asked: Asked, retry: boolean): Promise<Answer> {
  try {
    return await ask(hf, asked, retry)
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error
    const { code, facts } = error
    return error.retryable ? { type: 'unknown', code } : { type: 'no', code, facts }
  }
}

async function ask(hf: Holdfast, asked: Asked, retry: boolean): Promise<Answer> {
  const wallet = hf.wallet(asked.wallet)
  if (asked.kind === 'read') return read(wallet, asked.pending)
  if (asked.kind === 'transfer') {
    const { wallet: from, to, amount, fee, key } = asked
    const moved = await hf.transfer(from, to, amount, { key, fee })
    const entries = [...told(moved.from).entries, ...told(moved.to).entries]
    return { type: 'yes', replayed: moved.replayed, entries }
  }
  return { type: 'yes', ...told(await operate(wallet, asked, retry)) }
}

async function read(wallet: Wallet, pending: boolean): Promise<Answer> {
  const state = await wallet.get({ pending })
  if (!state) throw new HoldfastError('wallet_not_found')
  const { seq, available, reserved } = state
  return { type: 'read', seq, available, reserved }
}

async function operate(wallet: Wallet, asked: Exclude<Asked, { kind: 'read' | 'transfer' }>, retry: boolean) {
  const options = { key: asked.key, ...(retry && { retry }) }
  switch (asked.kind) {
    case 'credit':
      return wallet.credit(asked.amount, options)
    case 'debit':
      return wallet.debit(asked.amount, options)
    case 'hold':
      return (await wallet.hold(asked.amount, { ...options, ttl: asked.ttlMs })).receipt
    case 'refund':
      return wallet.refund(asked.of, asked.amount, options)
    case 'capture':
      return wallet.holdRef(asked.hold).capture(asked.amount, { ...options, beyond: beyond(asked) })
    case 'settle':
      return wallet.holdRef(asked.hold).settle(asked.amount, { ...options, beyond: beyond(asked) })
    case 'extend':
      return wallet.holdRef(asked.hold).extend({ ...options, amount: asked.amount, ttl: asked.ttlMs })
    case 'release':
      return wallet.holdRef(asked.hold).release(options)
    case 'meter': {
      const { rate, reserve, heartbeatMs: heartbeat } = asked
      return (await wallet.meter({ ...options, by: 'units', rate, reserve, heartbeat })).receipt
    }
    case 'tick':
      return (await wallet.sessionRef(asked.session).tick({ total: asked.total })).receipt
    case 'end':
      return (await wallet.sessionRef(asked.session).end({ total: asked.total })).receipt
  }
}

const beyond = (asked: { beyond: boolean }) => (asked.beyond ? 'available' : 'reject')
