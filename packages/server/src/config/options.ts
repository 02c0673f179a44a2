import type { EventName, ItemOptions, PayOptions } from 'holdfast'
import type { Scope } from '../access/scopes.js'
import { ON_A_DATABASE, ON_A_SERVER } from './command-names.js'
import { type Option, option } from './option.js'
import { AUDITS } from './options/audits.js'
import { CONNECTIONS } from './options/connections.js'
import { EVENTS } from './options/events.js'
import { FLAG_OPTIONS } from './options/flags.js'
import { KEY_OPTIONS } from './options/keys.js'
import { PRIMITIVES } from './options/primitives.js'
import { SALE_OPTIONS } from './options/sales.js'
import { SELLING } from './options/selling.js'
import { SERVING } from './options/serving.js'
import { STRIPE402_OPTIONS } from './options/stripe402.js'
import { UPKEEP } from './options/upkeep.js'
import { WALLET_OPTIONS } from './options/wallets.js'
import { boolean, oneOf } from './parsers.js'

const SHELLS = ['bash', 'zsh', 'fish'] as const

/**
 * The one table of what can be configured: flag, environment variable, default, what is allowed. Parsing, `--help`, completion and
 * `docs/reference/configuration.md` come from here. A flag wins over the environment, the environment over the default.
 */
export const OPTIONS = {
  ...SERVING,
  ...CONNECTIONS,
  ...AUDITS,
  ...UPKEEP,
  ...EVENTS,
  ...PRIMITIVES,
  ...SELLING,
  ...KEY_OPTIONS,
  ...FLAG_OPTIONS,
  ...WALLET_OPTIONS,
  ...SALE_OPTIONS,
  ...STRIPE402_OPTIONS,
  shell: option<(typeof SHELLS)[number]>({
    flag: 'shell',
    hint: 'shell',
    argument: true,
    text: 'The shell that is to complete what you type',
    commands: ['completion'],
    required: ['completion'],
    values: SHELLS,
    expected: `one of ${SHELLS.join(', ')}`,
    parse: oneOf(SHELLS),
  }),
  json: option({
    flag: 'json',
    text: 'Answer on standard output in JSON: with one line, or with one for each thing that is watched',
    commands: [...ON_A_DATABASE, ...ON_A_SERVER, 'stripe402 verify'],
    default: false,
    expected: 'no value',
    parse: boolean,
  }),
} as const satisfies Record<
  string,
  | Option<never>
  | Option<string>
  | Option<number>
  | Option<boolean>
  | Option<readonly string[]>
  | Option<readonly Scope[]>
  | Option<readonly EventName[]>
  | Option<readonly ItemOptions[]>
  | Option<PayOptions['price']>
>

export type OptionName = keyof typeof OPTIONS

type ValueOf<O> = O extends Option<infer T> ? T : never

/** Every option; those that a command does not have, or that have no default, are `undefined`. */
export type Config = { readonly [Name in OptionName]: ValueOf<(typeof OPTIONS)[Name]> | undefined }
