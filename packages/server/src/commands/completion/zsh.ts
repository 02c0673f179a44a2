import { briefly, type Point, points, type Word } from './words.js'

/** To be sourced, or kept as `_holdfast` in a folder of `fpath`. */
export function zshScript(): string {
  const all = points()
  const known = all.filter(({ after }) => after !== '').map(({ after }) => `'${after}'`)
  return `#compdef holdfast
# Completion of holdfast for zsh: source <(holdfast completion zsh)
_holdfast() {
  local at='' next='' index
  local -a found
  for ((index = 2; index < CURRENT; index++)); do
    next="\${at:+$at }\${words[index]}"
    case "$next" in
      (${known.join('|')}) at="$next" ;;
      (*) break ;;
    esac
  done
  case "$at \${words[CURRENT-1]}" in
${all.flatMap(valueCases).join('\n')}
  esac
  case "$at" in
${all.map(wordCase).join('\n')}
  esac
  _describe -t holdfast 'holdfast' found
}
if [[ "\${funcstack[1]}" = _holdfast ]]; then
  _holdfast "$@"
else
  compdef _holdfast holdfast
fi`
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

const described = (word: Word): string => quoted(`${word.text}:${briefly(word)}`)

const wordCase = ({ after, words, flags }: Point): string =>
  `    ('${after}') found=(${[...words, ...flags].map(described).join(' ')}) ;;`

function valueCases({ after, flags }: Point): string[] {
  return flags.flatMap(({ text, takes }) => {
    if (takes === 'nothing') return []
    const completed =
      takes === 'file' ? '_files; return' : takes === 'something' ? 'return' : `compadd -- ${takes.join(' ')}; return`
    return [`    ('${after} ${text}') ${completed} ;;`]
  })
}
