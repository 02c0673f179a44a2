import { isScope, SCOPE_MEANINGS, SCOPES, type Scope } from '../../access/scopes.js'
import { FLAGS } from '../command-names.js'
import { option } from '../option.js'
import { durationMs, integer, list, nonEmpty, plainText, UNIT_MS } from '../parsers.js'

/** API keys, as they are made, listed and revoked. */
export const KEY_OPTIONS = {
  keyId: option<string>({
    flag: 'id',
    hint: 'id',
    argument: true,
    text: 'The key to revoke, by the id that keys list shows',
    commands: ['keys revoke'],
    required: ['keys revoke'],
    expected: 'the id of a key',
    parse: nonEmpty,
  }),
  tenant: option<string>({
    flag: 'tenant',
    hint: 'name',
    text: 'Whose wallets or flags it is about: those of this tenant. Lists of keys and webhooks without it show all',
    commands: ['keys create', 'keys list', 'webhooks create', 'webhooks list', ...FLAGS, 'stripe402 import'],
    defaultOf: {
      'keys create': 'default',
      'webhooks create': 'default',
      'stripe402 import': 'default',
      ...(Object.fromEntries(FLAGS.map((name) => [name, 'default'])) as Record<(typeof FLAGS)[number], string>),
    },
    expected: '1 to 64 of a-z, 0-9, _ and -',
    parse: (text) => (/^[a-z0-9_-]{1,64}$/.test(text) ? text : undefined),
  }),
  keyName: option({
    flag: 'name',
    hint: 'text',
    text: 'What the key is for, for people who read the list',
    commands: ['keys create'],
    default: 'unnamed',
    expected: '1 to 100 characters, none of them control characters',
    parse: plainText(100),
  }),
  scopes: option<readonly Scope[]>({
    flag: 'scopes',
    hint: 'list',
    text: `What it may do, separated by commas. ${SCOPES.map((scope) => `${scope}: ${SCOPE_MEANINGS[scope]}`).join('; ')}`,
    commands: ['keys create'],
    default: SCOPES,
    values: SCOPES,
    expected: `some of ${SCOPES.join(', ')}`,
    parse: list((text) => (isScope(text) ? text : undefined)),
  }),
  walletPrefix: option<string>({
    flag: 'wallet-prefix',
    hint: 'text',
    text: 'Only for wallets whose id begins with it',
    commands: ['keys create', 'webhooks create'],
    expected: '1 to 255 characters, none of them control characters',
    parse: plainText(255),
  }),
  expiresInMs: option<number>({
    flag: 'expires-in',
    hint: 'duration',
    text: 'When it stops to work, from now. Without it: never',
    commands: ['keys create'],
    expected: 'a number with ms, s, m, h or d, such as 90d, up to 3650d',
    parse: durationMs(3_650 * UNIT_MS.d),
  }),
  rate: option<number>({
    flag: 'rate',
    hint: 'number',
    text: 'Operations a second that it may ask of each server. Without it: what the server allows to any key',
    commands: ['keys create'],
    expected: 'a whole number from 1 to 1000000',
    parse: integer(1, 1_000_000),
  }),
  concurrent: option<number>({
    flag: 'concurrent',
    hint: 'number',
    text: 'Requests at a time that it may have at each server. Without it: what the server allows to any key',
    commands: ['keys create'],
    expected: 'a whole number from 1 to 1000000',
    parse: integer(1, 1_000_000),
  }),
  bodyBytes: option<number>({
    flag: 'body-bytes',
    hint: 'bytes',
    text: 'Its largest body, where that is to be less than what the server takes',
    commands: ['keys create'],
    expected: 'bytes from 1 to 16777216',
    parse: integer(1, 16_777_216),
  }),
} as const
