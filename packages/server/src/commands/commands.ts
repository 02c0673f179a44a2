import type { CommandName } from '../config/index.js'
import { type Definition, from } from './command.js'
import { SALE_COMMANDS } from './sale/definitions.js'

/** Of the repository: flags and all go to another program, as they are. */
export interface PassedOn {
  readonly name: CommandName
  readonly description: string
}

const keys = () => import('./keys.js')
const webhooks = () => import('./webhooks.js')
const flags = () => import('./flags.js')
const reading = () => import('./wallet/reading.js')
const moves = () => import('./wallet/moves.js')

/** What a first word stands for. */
export const GROUPS = {
  keys: 'API keys for the server',
  webhooks: 'where events are told',
  flags: 'feature flags: look at them and change them',
  wallet: 'look at wallets and move money, by asking a server that runs (HOLDFAST_URL, HOLDFAST_KEY)',
  sale: 'open sales, look at them and buy, by asking a server that runs (HOLDFAST_URL, HOLDFAST_KEY)',
  stripe402: 'what stripe402 keeps in Redis or Postgres: compare it, and take it into wallets',
} as const

export const COMMANDS: readonly Definition[] = [
  {
    name: 'dev',
    description: 'the server with a private Redis and Postgres, all on this machine',
    run: from(
      () => import('./dev.js'),
      (module) => module.dev,
    ),
  },
  {
    name: 'serve',
    description: 'the server, on the Redis and Postgres that it is given',
    run: from(
      () => import('./serve.js'),
      (module) => module.serve,
    ),
  },
  {
    name: 'migrate',
    description: 'bring the database to the version of this Holdfast',
    run: from(
      () => import('./migrate.js'),
      (module) => module.migrate,
    ),
  },
  {
    name: 'audit',
    description: 'compare Redis and the journals with each other and with the laws they obey',
    run: from(
      () => import('./audit.js'),
      (module) => module.audit,
    ),
  },
  {
    name: 'rebuild',
    description:
      'fill Redis from Postgres, beside live traffic: the wallets with open holds and those that were used lately, or all. ' +
      'Never needed for correctness: a wallet is loaded when somebody uses it',
    run: from(
      () => import('./rebuild.js'),
      (module) => module.rebuild,
    ),
  },
  {
    name: 'reconcile',
    description:
      'go on after Postgres was restored, or failed over and lost commits: tells, keeps and then forgets what Redis knows of them',
    run: from(
      () => import('./reconcile.js'),
      (module) => module.reconcile,
    ),
  },
  {
    name: 'doctor',
    description: 'look at everything that the promise rests on, and change nothing',
    run: from(
      () => import('./doctor.js'),
      (module) => module.doctor,
    ),
  },
  {
    name: 'keys create',
    description: 'make an API key; it is shown this once',
    run: from(keys, (one) => one.createKey),
  },
  {
    name: 'keys list',
    description: 'the keys there are, and when they were last used',
    run: from(keys, (one) => one.listKeys),
  },
  {
    name: 'keys revoke',
    description: 'make a key worthless, on every server within a second',
    run: from(keys, (one) => one.revokeKey),
  },
  {
    name: 'webhooks create',
    description: 'have events told to an address; the secret that signs them is shown this once',
    run: from(webhooks, (one) => one.createWebhook),
  },
  {
    name: 'webhooks list',
    description: 'where events are told, and how that is going',
    run: from(webhooks, (one) => one.listWebhooks),
  },
  {
    name: 'webhooks delete',
    description: 'tell a webhook nothing more',
    run: from(webhooks, (one) => one.deleteWebhook),
  },
  {
    name: 'webhooks dead',
    description: 'events that a webhook did not take within a day',
    run: from(webhooks, (one) => one.deadDeliveries),
  },
  {
    name: 'webhooks replay',
    description: 'have those told again, for another day',
    run: from(webhooks, (one) => one.replayDeliveries),
  },
  { name: 'flags list', description: 'all flags of a tenant', run: from(flags, (one) => one.listFlags) },
  { name: 'flags get', description: 'a flag, with its rules', run: from(flags, (one) => one.getFlag) },
  {
    name: 'flags set',
    description: 'make a flag, or change what is given of it',
    run: from(flags, (one) => one.setFlag),
  },
  {
    name: 'flags on',
    description: 'on for whom its rules and its percentage say',
    run: from(flags, (one) => one.turnOn),
  },
  { name: 'flags off', description: 'off for everybody', run: from(flags, (one) => one.turnOff) },
  {
    name: 'flags percent',
    description: 'on for this percentage of those that no rule is about. More only adds some',
    run: from(flags, (one) => one.setPercentage),
  },
  { name: 'flags rules', description: 'put other rules in place of its own', run: from(flags, (one) => one.setRules) },
  {
    name: 'flags kill',
    description: 'the kill switch: off for everybody at once, whatever else the flag says',
    run: from(flags, (one) => one.killFlag),
  },
  {
    name: 'flags unkill',
    description: 'let the flag say again for whom it is on',
    run: from(flags, (one) => one.unkillFlag),
  },
  { name: 'flags delete', description: 'delete a flag; its history stays', run: from(flags, (one) => one.deleteFlag) },
  {
    name: 'flags history',
    description: 'who changed what, when and why, the latest first',
    run: from(flags, (one) => one.flagHistory),
  },
  {
    name: 'flags check',
    description: 'what a flag answers for somebody, and why',
    run: from(flags, (one) => one.checkFlag),
  },
  {
    name: 'wallet open',
    description: 'make a wallet. The same again changes nothing',
    run: from(reading, (one) => one.open),
  },
  { name: 'wallet show', description: 'a wallet as it stands', run: from(reading, (one) => one.show) },
  { name: 'wallet list', description: 'wallets in the order of their ids', run: from(reading, (one) => one.list) },
  { name: 'wallet credit', description: 'put money in', run: from(moves, (one) => one.move('credit')) },
  { name: 'wallet debit', description: 'check and take in one step', run: from(moves, (one) => one.move('debit')) },
  {
    name: 'wallet refund',
    description: 'give back a debit, capture, tick or settle: partly, repeatedly, never more than it was',
    run: from(moves, (one) => one.move('refund')),
  },
  {
    name: 'wallet hold',
    description: 'set money aside until it is settled, released, or its time is over. Its id is the key',
    run: from(moves, (one) => one.move('hold')),
  },
  {
    name: 'wallet capture',
    description: 'spend out of a hold; as often as wanted',
    run: from(moves, (one) => one.move('capture')),
  },
  {
    name: 'wallet extend',
    description: 'more money for a hold, more time, or both',
    run: from(moves, (one) => one.move('extend')),
  },
  {
    name: 'wallet settle',
    description: 'say what a hold comes to, and close it. What is not needed goes back',
    run: from(moves, (one) => one.move('settle')),
  },
  {
    name: 'wallet release',
    description: 'give back what is left of a hold, and close it',
    run: from(moves, (one) => one.move('release')),
  },
  {
    name: 'wallet freeze',
    description: 'spend and reserve nothing from now on; what was reserved can still be used',
    run: from(moves, (one) => one.move('freeze')),
  },
  { name: 'wallet unfreeze', description: 'let it spend again', run: from(moves, (one) => one.move('unfreeze')) },
  {
    name: 'wallet credit-limit',
    description: 'say how far the available balance may go below zero',
    run: from(moves, (one) => one.move('creditLimit')),
  },
  {
    name: 'wallet close',
    description: 'close an empty wallet for good',
    run: from(moves, (one) => one.move('close')),
  },
  { name: 'wallet holds', description: 'its open holds, oldest first', run: from(reading, (one) => one.holds) },
  { name: 'wallet entries', description: 'its journal, oldest first', run: from(reading, (one) => one.entries) },
  {
    name: 'wallet explain',
    description: 'where the money of a hold went, step by step',
    run: from(reading, (one) => one.explain),
  },
  {
    name: 'wallet watch',
    description: 'its entries as they come, until Ctrl-C',
    run: from(
      () => import('./wallet/watch.js'),
      (module) => module.watch,
    ),
  },
  ...SALE_COMMANDS,
  {
    name: 'stripe402 import',
    description:
      'take the clients of a stripe402 store, with their transactions, into wallets. Safe to repeat: what is there stays, what is missing comes',
    run: from(
      () => import('./stripe402/import.js'),
      (module) => module.importClients,
    ),
  },
  {
    name: 'stripe402 verify',
    description: 'compare the balances of a stripe402 store with its transactions, and change nothing',
    run: from(
      () => import('./stripe402/verify.js'),
      (module) => module.verify,
    ),
  },
  {
    name: 'completion',
    description: 'a script that lets a shell complete what you type: source <(holdfast completion bash)',
    run: from(
      () => import('./completion/index.js'),
      (module) => module.completion,
    ),
  },
]

export const PASSED_ON: readonly PassedOn[] = [
  { name: 'bench', description: 'benchmarks against other ways of doing the same; from a clone of the repository' },
  { name: 'sim', description: 'the deterministic simulator; from a clone of the repository' },
  { name: 'chaos', description: 'harm to real servers under load; from a clone of the repository' },
]
