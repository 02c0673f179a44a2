import { EVENT_NAMES, type EventName } from 'holdfast'
import { SERVERS } from '../command-names.js'
import { option } from '../option.js'
import { amount, integer, list, nonEmpty } from '../parsers.js'

/** Events, and the webhooks that are told of them. */
export const EVENTS = {
  eventsKeepMs: option({
    flag: 'events-keep-ms',
    variable: 'HOLDFAST_EVENTS_KEEP_MS',
    hint: 'ms',
    text: 'How long events are kept: so long one may stay away and come back with Last-Event-ID. They are noted for so long after somebody last asked for any',
    commands: SERVERS,
    default: 604_800_000,
    expected: 'milliseconds from 172800000 to 7776000000',
    parse: integer(172_800_000, 7_776_000_000),
  }),
  eventsExpiringMs: option({
    flag: 'events-expiring-ms',
    variable: 'HOLDFAST_EVENTS_EXPIRING_MS',
    hint: 'ms',
    text: 'How long before it runs out a hold is told to be expiring. 0: it is not',
    commands: SERVERS,
    default: 60_000,
    expected: 'milliseconds from 1000 to 86400000, or 0',
    parse: (text) => (text === '0' ? 0 : integer(1_000, 86_400_000)(text)),
  }),
  webhookHosts: option<readonly string[]>({
    flag: 'webhook-hosts',
    variable: 'HOLDFAST_WEBHOOK_HOSTS',
    hint: 'list',
    text: 'Hosts that webhooks may be at although their addresses are not public, or without TLS, separated by commas; with a port only that one',
    commands: [...SERVERS, 'webhooks create'],
    defaultOf: { dev: ['localhost', '127.0.0.1', '[::1]'] },
    expected: 'hosts such as hooks.internal or localhost:8080',
    parse: list((text) => (/^(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(:\d{1,5})?$/.test(text) ? text : undefined)),
  }),
  webhookId: option<string>({
    flag: 'id',
    hint: 'id',
    argument: true,
    text: 'The webhook, by the id that webhooks list shows',
    commands: ['webhooks delete', 'webhooks dead', 'webhooks replay'],
    required: ['webhooks delete', 'webhooks dead', 'webhooks replay'],
    expected: 'the id of a webhook',
    parse: nonEmpty,
  }),
  webhookUrl: option<string>({
    flag: 'url',
    hint: 'url',
    text: 'Who is told, by POST',
    commands: ['webhooks create'],
    required: ['webhooks create'],
    expected: 'a URL such as https://example.com/holdfast',
    parse: nonEmpty,
  }),
  webhookEvents: option<readonly EventName[]>({
    flag: 'events',
    hint: 'list',
    text: `Which events, separated by commas: ${EVENT_NAMES.join(', ')}. Without it all that is told of wallets`,
    commands: ['webhooks create'],
    values: EVENT_NAMES,
    expected: `some of ${EVENT_NAMES.join(', ')}`,
    parse: list((text) => EVENT_NAMES.find((name) => name === text)),
  }),
  balanceLow: option<number>({
    flag: 'balance-low',
    hint: 'amount',
    text: 'balance.low: when available falls below this. Without it never',
    commands: ['webhooks create'],
    expected: `a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`,
    parse: amount(0),
  }),
} as const
