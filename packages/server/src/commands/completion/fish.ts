import { briefly, type FlagWord, type Point, points, type Word } from './words.js'

export function fishScript(): string {
  const all = points()
  const known = all.filter(({ after }) => after !== '').map(({ after }) => `'${after}'`)
  return `# Completion of holdfast for fish: holdfast completion fish | source
function __holdfast_at
    set -l at ''
    for word in (commandline -opc)[2..-1]
        set -l next (string trim -- "$at $word")
        contains -- "$next" ${known.join(' ')}; or break
        set at "$next"
    end
    test "$at" = "$argv[1]"
end
complete -c holdfast -f
${all.flatMap(lines).join('\n')}`
}

const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

function lines({ after, words, flags }: Point): string[] {
  const when = `complete -c holdfast -n "__holdfast_at '${after}'"`
  return [
    ...words.map((word: Word) => `${when} -a ${word.text} -d ${quoted(briefly(word))}`),
    ...flags.map((flag) => `${when} -l ${flag.text.slice(2)} ${takes(flag)}-d ${quoted(briefly(flag))}`),
  ]
}

function takes({ takes }: FlagWord): string {
  if (takes === 'nothing') return ''
  if (takes === 'file') return '-r -F '
  return takes === 'something' ? '-x ' : `-x -a '${takes.join(' ')}' `
}
