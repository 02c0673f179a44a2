import { randomUUID } from 'node:crypto'
import type { Filed, Journal } from '../../packages/holdfast/src/journal/index.js'
import { command, decide, genesisHash, markRef, type WalletState } from '../../packages/holdfast/src/machine/index.js'
import { FUNDS, HOLD_AMOUNT, HOLD_TTL_MS, SETTLE_TOTAL } from '../harness/contender.js'

interface Wallet {
  readonly ref: string
  readonly state: WalletState
  /** The key of its open hold, or empty. */
  held: string
}

/** Wallets of one lane, and what comes next in their journals: a hold, a settle, a hold, … in whatever wallet chance picks. */
export class Wallets {
  readonly #wallets: readonly Wallet[]

  private constructor(wallets: readonly Wallet[]) {
    this.#wallets = wallets
  }

  static async open(journal: Journal, count: number): Promise<Wallets> {
    const wallets: Wallet[] = []
    for (let n = 0; n < count; n += 1) {
      const ref = markRef(randomUUID().replaceAll('-', ''), false)
      const head = genesisHash(ref, 'usd')
      await journal.open({
        ref,
        tenant: 'bench',
        id: `wallet-${n}`,
        currency: 'usd',
        creditLimit: 0,
        metadata: '',
        head,
      })
      const [raised] = await journal.raise([{ ref, epochMin: 0, memory: false, known: null }])
      if (!raised || raised === 'locked') throw new Error('A wallet that was just opened is not there')
      wallets.push({ ref, state: raised.state, held: '' })
    }
    const all = new Wallets(wallets)
    const credits = wallets.map((wallet) => all.#decide(wallet, { kind: 'credit', key: 'seed', amount: FUNDS }))
    for (let from = 0; from < count; from += 1_000) await journal.append(credits.slice(from, from + 1_000))
    return all
  }

  next(entries: number): Filed[] {
    return Array.from({ length: entries }, () => {
      const wallet = this.#wallets[Math.floor(Math.random() * this.#wallets.length)] as Wallet
      const key = randomUUID()
      const hold = wallet.held
      wallet.held = hold === '' ? key : ''
      return hold === ''
        ? this.#decide(wallet, { kind: 'hold', key, amount: HOLD_AMOUNT, ttlMs: HOLD_TTL_MS })
        : this.#decide(wallet, { kind: 'settle', key, hold, amount: SETTLE_TOTAL })
    })
  }

  #decide({ ref, state }: Wallet, given: Parameters<typeof command>[0]): Filed {
    const entry = decide(state, command(given), Date.now()).entries.at(-1)
    if (!entry) throw new Error(`Expected an entry, got a refusal of ${given.kind}`)
    return { ref, entry, deadline: 0 }
  }
}
