import { ServicesError } from '@holdfast/services'
import { Command, CommanderError } from 'commander'
import { ConfigError } from '../config/index.js'
import { StartError } from '../lifecycle/start-error.js'
import { redactText } from '../logging/redact.js'
import { VERSION } from '../version.js'
import { defineCommand, EXIT, type Run, type Terminal } from './command.js'

// Loaded when they run: help, and a mistake on the command line, need not wait for a whole server.
const dev: Run = async (...given) => (await import('./dev.js')).dev(...given)
const serve: Run = async (...given) => (await import('./serve.js')).serve(...given)
const migrate: Run = async (...given) => (await import('./migrate.js')).migrate(...given)
const audit: Run = async (...given) => (await import('./audit.js')).audit(...given)
const rebuild: Run = async (...given) => (await import('./rebuild.js')).rebuild(...given)

const reconcile: Run = async (...given) => (await import('./reconcile.js')).reconcile(...given)
const doctor: Run = async (...given) => (await import('./doctor.js')).doctor(...given)

const createKey: Run = async (...given) => (await import('./keys.js')).createKey(...given)
const listKeys: Run = async (...given) => (await import('./keys.js')).listKeys(...given)
const revokeKey: Run = async (...given) => (await import('./keys.js')).revokeKey(...given)

const createWebhook: Run = async (...given) => (await import('./webhooks.js')).createWebhook(...given)
const listWebhooks: Run = async (...given) => (await import('./webhooks.js')).listWebhooks(...given)
const deleteWebhook: Run = async (...given) => (await import('./webhooks.js')).deleteWebhook(...given)
const deadDeliveries: Run = async (...given) => (await import('./webhooks.js')).deadDeliveries(...given)
const replayDeliveries: Run = async (...given) => (await import('./webhooks.js')).replayDeliveries(...given)

const COMMANDS = [
  { name: 'dev', description: 'the server with a private Redis and Postgres, all on this machine', run: dev },
  { name: 'serve', description: 'the server, on the Redis and Postgres that it is given', run: serve },
  { name: 'migrate', description: 'bring the database to the version of this Holdfast', run: migrate },
  {
    name: 'audit',
    description: 'compare Redis and the journals with each other and with the laws they obey',
    run: audit,
  },
  {
    name: 'rebuild',
    description:
      'fill Redis from Postgres, beside live traffic: the wallets with open holds and those that were used lately, or all. ' +
      'Never needed for correctness: a wallet is loaded when somebody uses it',
    run: rebuild,
  },
  {
    name: 'reconcile',
    description:
      'go on after Postgres was restored, or failed over and lost commits: tells, keeps and then forgets what Redis knows of them',
    run: reconcile,
  },
  { name: 'doctor', description: 'look at everything that the promise rests on, and change nothing', run: doctor },
  { name: 'keys create', description: 'make an API key; it is shown this once', run: createKey },
  { name: 'keys list', description: 'the keys there are, and when they were last used', run: listKeys },
  { name: 'keys revoke', description: 'make a key worthless, on every server within a second', run: revokeKey },
  {
    name: 'webhooks create',
    description: 'have events told to an address; the secret that signs them is shown this once',
    run: createWebhook,
  },
  { name: 'webhooks list', description: 'where events are told, and how that is going', run: listWebhooks },
  { name: 'webhooks delete', description: 'tell a webhook nothing more', run: deleteWebhook },
  { name: 'webhooks dead', description: 'events that a webhook did not take within a day', run: deadDeliveries },
  { name: 'webhooks replay', description: 'have those told again, for another day', run: replayDeliveries },
] as const

/** What a first word stands for. */
const GROUPS = { keys: 'API keys for the server', webhooks: 'where events are told' } as const

const EXIT_CODES = `
Exit codes: ${EXIT.ok} done, ${EXIT.failed} tried and failed, ${EXIT.usage} wrong flags or configuration.`

/** Runs one command line and gives back its exit code. Whatever goes wrong ends as a message, never as a stack. */
export async function main(args: readonly string[], terminal: Terminal): Promise<number> {
  let exitCode: number = EXIT.ok
  const program = new Command('holdfast')
    .description('Balances, holds and limited stock that are never double-spent, oversold or lost')
    .version(VERSION)
    .addHelpText('after', EXIT_CODES)
    .showHelpAfterError('See: holdfast --help')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.print(text.trimEnd()),
      writeErr: (text) => terminal.complain(text.trim().replace(/^error: /, '')),
    })
  for (const definition of COMMANDS) {
    const command = defineCommand(definition, terminal, (code) => {
      exitCode = code
    })
    const [group] = definition.name.split(' ').slice(0, -1)
    const parent = group === undefined ? program : groupOf(program, group as keyof typeof GROUPS)
    parent.addCommand(
      command.copyInheritedSettings(program).showHelpAfterError(`See: holdfast ${definition.name} --help`),
    )
  }
  try {
    if (args.length === 0) {
      terminal.complain('no command given\nSee: holdfast --help')
      return EXIT.usage
    }
    await program.parseAsync(args, { from: 'user' })
    return exitCode
  } catch (error) {
    return explain(error, terminal)
  }
}

function groupOf(program: Command, name: keyof typeof GROUPS): Command {
  const known = program.commands.find((command) => command.name() === name)
  if (known) return known
  const group = new Command(name).description(GROUPS[name]).copyInheritedSettings(program)
  program.addCommand(group.showHelpAfterError(`See: holdfast ${name} --help`))
  return group
}

function explain(error: unknown, { complain }: Terminal): number {
  // Commander has written its own message, or the help that was asked for.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
  if (error instanceof ConfigError) {
    complain(error.message)
    return EXIT.usage
  }
  if (error instanceof StartError || error instanceof ServicesError) {
    complain(error.message)
    return EXIT.failed
  }
  complain(`Something failed that should not: ${redactText(error instanceof Error ? error.message : String(error))}`)
  return EXIT.failed
}
