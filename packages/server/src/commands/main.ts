import { ServicesError } from '@holdfast/services'
import { Command, CommanderError } from 'commander'
import { ConfigError } from '../config/index.js'
import { StartError } from '../lifecycle/start-error.js'
import { redactText } from '../logging/redact.js'
import { VERSION } from '../version.js'
import { defineCommand, EXIT, type Terminal } from './command.js'
import { COMMANDS, GROUPS, PASSED_ON } from './commands.js'

const EXIT_CODES = `
Exit codes: ${EXIT.ok} done, ${EXIT.failed} tried and failed, ${EXIT.usage} wrong flags or configuration.`

/** Runs one command line and gives back its exit code. Whatever goes wrong ends as a message, never as a stack. */
export async function main(args: readonly string[], terminal: Terminal): Promise<number> {
  let exitCode: number = EXIT.ok
  const finish = (code: number): void => {
    exitCode = code
  }
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
    const command = defineCommand(definition, terminal, finish)
    const [group] = definition.name.split(' ').slice(0, -1)
    const parent = group === undefined ? program : groupOf(program, group as keyof typeof GROUPS)
    parent.addCommand(
      command.copyInheritedSettings(program).showHelpAfterError(`See: holdfast ${definition.name} --help`),
    )
  }
  for (const { name, description } of PASSED_ON) program.addCommand(passOn(name, description, finish))
  try {
    const [first, second] = args
    if (first === undefined) {
      terminal.complain('no command given\nSee: holdfast --help')
      return EXIT.usage
    }
    // Commander would write the whole help as if it were a complaint.
    if (second === undefined && first in GROUPS) {
      const names = COMMANDS.flatMap(({ name }) => (name.startsWith(`${first} `) ? [name.slice(first.length + 1)] : []))
      terminal.complain(`${first}: expected one of ${names.join(', ')} behind it\nSee: holdfast ${first} --help`)
      return EXIT.usage
    }
    await program.parseAsync(args, { from: 'user' })
    return exitCode
  } catch (error) {
    return explain(error, terminal)
  }
}

/** Even `--help` is the other program's. */
function passOn(name: string, description: string, finish: (code: number) => void): Command {
  const command = new Command(name)
    .description(description)
    .helpOption(false)
    .allowUnknownOption()
    .allowExcessArguments()
  return command.action(async () => {
    const { runInWorkshop } = await import('./workshop.js')
    finish(await runInWorkshop(name, command.args))
  })
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
