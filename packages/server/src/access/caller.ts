import { HoldfastError } from 'holdfast'
import type { KeyLimits } from './api-keys.js'
import type { Scope } from './scopes.js'

/** Who sent a request, and what they may do. */
export interface Caller extends KeyLimits {
  readonly kind: 'key' | 'token'
  readonly keyId: string
  readonly tenant: string
  readonly scopes: readonly Scope[]
  /** Of a token: its only wallet. */
  readonly wallet: string | null
  readonly walletPrefix: string
}

/** The same answer whether there is such a wallet or not: nobody learns by it what others have. */
export function requireWallet({ wallet, walletPrefix }: Caller, id: string): void {
  if (wallet !== null && wallet !== id) throw new HoldfastError('forbidden', 'The token is for another wallet')
  if (!id.startsWith(walletPrefix)) {
    throw new HoldfastError('forbidden', 'The key is for wallets whose id begins otherwise')
  }
}

export function requireScope({ scopes, kind }: Caller, scope: Scope): void {
  if (scopes.includes(scope)) return
  throw new HoldfastError('forbidden', `Expected a ${kind} with the scope ${scope}, got one without`, { scope })
}

/** For what is not about wallets, and so about all of the tenant. */
export function requireWholeTenant({ walletPrefix }: Caller): void {
  if (walletPrefix === '') return
  throw new HoldfastError('forbidden', 'Expected a key for all wallets, got one for those with a prefix')
}

export function requireKey({ kind }: Caller): void {
  if (kind !== 'key') throw new HoldfastError('forbidden', 'Expected an API key, got a wallet token')
}
