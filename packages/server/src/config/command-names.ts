/** What can stand after `holdfast`. The first of two words is a group. */
export const SERVERS = ['dev', 'serve'] as const
/** At work on both servers for a while, and then done. */
export const TOOLS = ['audit', 'rebuild'] as const
/** Look at both servers, and end. */
export const LOOKS = ['reconcile', 'doctor'] as const
export const KEYS = ['keys create', 'keys list', 'keys revoke'] as const
export const WEBHOOKS = [
  'webhooks create',
  'webhooks list',
  'webhooks delete',
  'webhooks dead',
  'webhooks replay',
] as const

/** Change a flag, and leave a line in its history. */
export const FLAGS_CHANGES = [
  'flags set',
  'flags on',
  'flags off',
  'flags percent',
  'flags rules',
  'flags kill',
  'flags unkill',
  'flags delete',
] as const
export const FLAGS = ['flags list', 'flags get', ...FLAGS_CHANGES, 'flags history', 'flags check'] as const

/** Move something out of a hold, or close it. */
export const OF_A_HOLD = ['wallet capture', 'wallet extend', 'wallet settle', 'wallet release'] as const
/** Need a key that makes them safe to repeat. */
export const MOVES = [
  'wallet credit',
  'wallet debit',
  'wallet refund',
  'wallet hold',
  ...OF_A_HOLD,
  'wallet freeze',
  'wallet unfreeze',
  'wallet credit-limit',
  'wallet close',
] as const
/** Show a part of a longer list. */
export const PAGES = ['wallet list', 'wallet holds', 'wallet entries'] as const
export const WALLETS = ['wallet open', 'wallet show', ...PAGES, ...MOVES, 'wallet explain', 'wallet watch'] as const

/** Of one sale, by its id. */
export const OF_A_SALE = [
  'sale open',
  'sale status',
  'sale items',
  'sale attempts',
  'sale checkout',
  'sale running',
  'sale close',
  'sale watch',
] as const
/** Of one checkout, by its code. */
export const OF_A_CHECKOUT = ['sale code', 'sale purchase', 'sale cancel'] as const
/** Of one schedule, by its id. */
export const OF_A_SCHEDULE = [
  'sale repeat',
  'sale schedule',
  'sale slots',
  'sale current',
  'sale next',
  'sale pause',
  'sale resume',
] as const
/** Say what a sale is opened with, or every sale of a schedule. */
export const OPENINGS = ['sale open', 'sale repeat'] as const
/** Show a part of a longer list. */
export const SALE_PAGES = ['sale list', 'sale items', 'sale attempts', 'sale schedules', 'sale slots'] as const
export const SALES = ['sale list', ...OF_A_SALE, ...OF_A_CHECKOUT, 'sale schedules', ...OF_A_SCHEDULE] as const

/** Ask a server that runs. */
export const ON_A_SERVER = [...WALLETS, ...SALES] as const

/** About a stripe402 store that is there. The first takes it into wallets, so that it needs both servers. */
export const STRIPE402 = ['stripe402 import', 'stripe402 verify'] as const

/** Of the repository rather than of the package. */
export const WORKSHOP = ['bench', 'sim', 'chaos'] as const

/** All that need the database. */
export const ON_A_DATABASE = [
  'dev',
  'serve',
  'migrate',
  ...TOOLS,
  ...LOOKS,
  ...KEYS,
  ...WEBHOOKS,
  ...FLAGS,
  'stripe402 import',
] as const

export type CommandName =
  | (typeof ON_A_DATABASE)[number]
  | (typeof ON_A_SERVER)[number]
  | (typeof STRIPE402)[number]
  | (typeof WORKSHOP)[number]
  | 'completion'
