/** What other folders of the library know of wallets: types alone. Users enter through `src/index.ts`. */
export type { Holdfast } from './holdfast.js'
export type { Entry, Receipt } from './receipt.js'
export type { OperationOptions } from './tenant.js'
export type { Wallet, WalletState } from './wallet.js'
