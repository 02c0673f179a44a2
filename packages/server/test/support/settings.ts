import { readConfig } from '../../src/config/index.js'
import { SELLING } from '../../src/config/options/selling.js'
import type { SaleSettings } from '../../src/sales/index.js'

const URLS = { REDIS_URL: 'redis://127.0.0.1', DATABASE_URL: 'postgres://127.0.0.1' }
const { config } = readConfig('serve', {}, URLS)
const names = Object.keys(SELLING) as (keyof typeof SELLING)[]

/** What a server that is told nothing does for sales. */
export const SALE_DEFAULTS = Object.fromEntries(names.map((name) => [name, config[name]])) as unknown as SaleSettings
