import type { CommandName } from './command-names.js'
import type { Option } from './option.js'
import { type Config, OPTIONS, type OptionName } from './options.js'

/** The configuration is wrong. The message names the variable or flag: the person at the terminal needs no stack. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

export interface ReadConfig {
  config: Config
  /** How to name an option in a message: by the flag or variable that it came from, or could come from. */
  nameOf(option: OptionName): string
}

export type Flags = Readonly<Record<string, string | boolean | undefined>>

const optionsOf = (command: CommandName) =>
  (Object.entries(OPTIONS) as [OptionName, Option<unknown>][]).filter(([, option]) => option.commands.includes(command))

/** Reads all of it at once, so that one start tells every mistake. */
export function readConfig(command: CommandName, flags: Flags, environment: NodeJS.ProcessEnv): ReadConfig {
  const values: Partial<Record<OptionName, unknown>> = {}
  const names: Partial<Record<OptionName, string>> = {}
  const mistakes: string[] = []

  for (const [name, option] of optionsOf(command)) {
    const given = givenValue(option, flags, environment)
    names[name] = given?.name ?? option.variable ?? shapeOf(option)
    if (given === undefined) {
      values[name] = option.defaultOf?.[command] ?? option.default
      if (option.required?.includes(command)) mistakes.push(`${names[name]}: expected ${option.expected}, got nothing`)
      continue
    }
    values[name] = option.parse(given.text)
    if (values[name] !== undefined) continue
    // A URL that can't be read may hold its password anywhere.
    const got = option.secret ? 'something else' : JSON.stringify(given.text)
    mistakes.push(`${given.name}: expected ${option.expected}, got ${got}`)
  }
  for (const [name, option] of optionsOf(command)) {
    const needed = option.needs as OptionName | undefined
    if (needed === undefined || values[name] === undefined || values[needed] !== undefined) continue
    const { expected } = OPTIONS[needed]
    mistakes.push(`${names[needed]}: expected ${expected}, because ${names[name]} is given, got nothing`)
  }
  if (mistakes.length > 0) throw new ConfigError(mistakes.join('\n'))
  return { config: values as Config, nameOf: (name) => names[name] ?? name }
}

/** As it stands on the command line. */
const shapeOf = ({ argument, hint, flag }: Option<unknown>) => (argument ? `<${hint}>` : `--${flag}`)

function givenValue(option: Option<unknown>, flags: Flags, environment: NodeJS.ProcessEnv) {
  const flag = flags[option.flag]
  if (flag !== undefined) return { name: shapeOf(option), text: String(flag) }
  // An empty variable is how shells and compose files say "not set".
  const text = option.variable === undefined ? undefined : environment[option.variable]
  return text ? { name: option.variable as string, text } : undefined
}
