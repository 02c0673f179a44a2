import type { Config } from '../../config/index.js'

export const walletPath = ({ walletId }: Config): string => `/wallets/${encodeURIComponent(walletId as string)}`
