import { Command, Option as Flag } from 'commander'
import { type CommandName, type Flags, OPTIONS, type Option, type ReadConfig, readConfig } from '../config/index.js'

/** What scripts can rely on. */
export const EXIT = {
  ok: 0,
  /** It was tried, and failed. */
  failed: 1,
  /** It was not tried: wrong flags or configuration. */
  usage: 2,
} as const

export interface Terminal {
  /** Standard output: what a command answers. */
  print(text: string): void
  /** Standard error: why it did not. */
  complain(text: string): void
  /** Standard error: how far it has come. */
  progress(text: string): void
  environment: NodeJS.ProcessEnv
  /** Standard output, where somebody looks at it: for what is drawn in place. */
  screen?: { columns(): number; write(text: string): void }
}

/** A command gives back its exit code. */
export type Run = (configuration: ReadConfig, terminal: Terminal) => Promise<number>

export interface Definition {
  readonly name: CommandName
  readonly description: string
  readonly run: Run
}

/** Loaded when they run: help, and a mistake on the command line, need not wait for a whole server. */
export const from =
  <Module>(load: () => Promise<Module>, pick: (module: Module) => Run): Run =>
  async (...given) =>
    pick(await load())(...given)

/** In the order of the table: that of the help, and of what is given by its place. */
export const optionsOf = (name: CommandName): Option<unknown>[] =>
  Object.values<Option<unknown>>(OPTIONS).filter(({ commands }) => commands.includes(name))

/** Flags and help come from the same table that the values are read by. */
export function defineCommand(
  { name, description, run }: Definition,
  terminal: Terminal,
  done: (code: number) => void,
) {
  // The first of two words is a group: `keys create`.
  const command = new Command(name.split(' ').at(-1)).description(description).allowExcessArguments(false)
  const options = optionsOf(name)
  const places = options.filter(({ argument }) => argument)
  for (const { hint, text } of places) command.argument(`<${hint}>`, text)
  for (const option of options) if (!option.argument) command.addOption(flagOf(option, name))
  return command.action(async () => {
    const given = command.opts() as Record<string, string | boolean | undefined>
    const flags: Flags = Object.fromEntries([
      ...command.options.map((flag) => {
        const value = given[flag.attributeName()]
        // Commander turns `--no-repair` into a `repair` that is false.
        return [flag.name(), flag.negate ? value === false || undefined : value]
      }),
      ...places.map(({ flag }, place) => [flag, command.args[place]]),
    ])
    done(await run(readConfig(name, flags, terminal.environment), terminal))
  })
}

/** Commander only knows the shape: values are read, and defaults applied, in `config`. */
function flagOf(option: Option<unknown>, command: CommandName): Flag {
  const byDefault = option.defaultOf?.[command] ?? option.default
  const notes = [
    option.variable && `env: ${option.variable}`,
    option.required?.includes(command) && 'required',
    option.hint && byDefault !== undefined && `default: ${byDefault}`,
  ].filter(Boolean)
  const shape = option.hint ? `--${option.flag} <${option.hint}>` : `--${option.flag}`
  return new Flag(shape, notes.length > 0 ? `${option.text} (${notes.join(', ')})` : option.text)
}
