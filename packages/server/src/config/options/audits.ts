import { SERVERS } from '../command-names.js'
import { option } from '../option.js'
import { boolean, integer, url } from '../parsers.js'

/** Audits in the background of a server. */
export const AUDITS = {
  auditIntervalMs: option({
    flag: 'audit-interval-ms',
    variable: 'HOLDFAST_AUDIT_INTERVAL_MS',
    hint: 'ms',
    text: 'How often each shard is audited, by whichever process. 0: not in the background',
    commands: SERVERS,
    default: 300_000,
    expected: 'milliseconds from 1000 to 604800000, or 0',
    parse: (text) => (text === '0' ? 0 : integer(1_000, 604_800_000)(text)),
  }),
  auditRepair: option({
    flag: 'audit-repair',
    variable: 'HOLDFAST_AUDIT_REPAIR',
    hint: 'boolean',
    text: 'Whether an audit in the background puts right what the journal decides, or only tells of it',
    commands: SERVERS,
    default: true,
    expected: 'true or false',
    parse: boolean,
  }),
  auditWebhookUrl: option<string>({
    flag: 'audit-webhook-url',
    variable: 'HOLDFAST_AUDIT_WEBHOOK_URL',
    hint: 'url',
    text: 'Who is told of what audits in the background find, by POST',
    commands: SERVERS,
    needs: 'auditWebhookSecret',
    secret: true,
    expected: 'a URL such as https://alerts.example.com/holdfast',
    parse: url('http:', 'https:'),
  }),
  auditWebhookSecret: option<string>({
    flag: 'audit-webhook-secret',
    variable: 'HOLDFAST_AUDIT_WEBHOOK_SECRET',
    hint: 'secret',
    text: 'Signs what the webhook is told. Better in the environment: flags can be seen by others',
    commands: SERVERS,
    needs: 'auditWebhookUrl',
    secret: true,
    expected: 'at least 16 characters',
    parse: (text) => (text.length >= 16 ? text : undefined),
  }),
} as const
