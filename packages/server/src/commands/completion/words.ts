/** What can be typed at each point, for every shell. From the tables of commands and options. */
import { optionsOf } from '../command.js'
import { COMMANDS, GROUPS, PASSED_ON } from '../commands.js'

export interface Word {
  readonly text: string
  readonly means: string
}

export interface FlagWord extends Word {
  /** What can stand behind it: nothing, one of these, a file, or something that nobody can guess. */
  readonly takes: 'nothing' | 'something' | 'file' | readonly string[]
}

export interface Point {
  /** The words of the command so far: `keys create`; empty at the beginning. */
  readonly after: string
  /** Commands that can follow, or values of its arguments. */
  readonly words: readonly Word[]
  readonly flags: readonly FlagWord[]
}

const HELP: FlagWord = { text: '--help', means: 'what there is to know about it', takes: 'nothing' }
const VERSION: FlagWord = { text: '--version', means: 'the version of this Holdfast', takes: 'nothing' }
const FILES = ['file', 'folder']

export function points(): Point[] {
  const single = [...COMMANDS, ...PASSED_ON].filter(({ name }) => !name.includes(' '))
  const groups = Object.entries(GROUPS)
  const first = [...single.map(wordOf), ...groups.map(([text, means]) => ({ text, means }))]
  return [
    { after: '', words: first, flags: [HELP, VERSION] },
    ...groups.map(([group]) => ({ after: group, words: membersOf(group), flags: [HELP] })),
    ...COMMANDS.map(({ name }) => ({ after: name, words: valuesOf(name), flags: [...flagsOf(name), HELP] })),
  ]
}

type Named = (typeof COMMANDS | typeof PASSED_ON)[number]

const wordOf = ({ name, description }: Named): Word => ({ text: name.split(' ').at(-1) as string, means: description })

const membersOf = (group: string): Word[] => COMMANDS.filter(({ name }) => name.startsWith(`${group} `)).map(wordOf)

const valuesOf = (name: Named['name']): Word[] =>
  optionsOf(name).flatMap(({ argument, values = [], text }) =>
    argument ? values.map((value) => ({ text: value, means: text })) : [],
  )

const flagsOf = (name: Named['name']): FlagWord[] =>
  optionsOf(name)
    .filter(({ argument }) => !argument)
    .map(({ flag, text, hint, values }) => ({
      text: `--${flag}`,
      means: text,
      takes: hint === undefined ? 'nothing' : (values ?? (FILES.includes(hint) ? 'file' : 'something')),
    }))

/** In one line, and short: up to the first full stop. */
export const briefly = ({ means }: Word): string => (means.split(/[.:] /)[0] as string).replace(/\.$/, '')
