import { points } from './words.js'

/** Works in the bash of macOS (3.2) too, and without bash-completion. */
export function bashScript(): string {
  const all = points()
  const quoted = (after: string) => `'${after}'`
  const known = all.filter(({ after }) => after !== '').map(({ after }) => quoted(after))
  return `# Completion of holdfast for bash: source <(holdfast completion bash)
_holdfast() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" at='' next='' words='' index
  COMPREPLY=()
  for ((index = 1; index < COMP_CWORD; index++)); do
    next="\${at:+$at }\${COMP_WORDS[index]}"
    case "$next" in
      ${known.join('|')}) at="$next" ;;
      *) break ;;
    esac
  done
  case "$at $previous" in
${all.flatMap(valueCases).join('\n')}
  esac
  case "$at" in
${all.map(({ after, words, flags }) => `    ${quoted(after)}) words='${[...words, ...flags].map(({ text }) => text).join(' ')}' ;;`).join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _holdfast holdfast`
}

/** What stands behind a flag: one of its values, a file, or what nobody can guess. */
function valueCases({ after, flags }: ReturnType<typeof points>[number]): string[] {
  return flags.flatMap(({ text, takes }) => {
    if (takes === 'nothing') return []
    const completed =
      takes === 'file'
        ? 'compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$current")); return ;;'
        : takes === 'something'
          ? 'return ;;'
          : `COMPREPLY=($(compgen -W '${takes.join(' ')}' -- "$current")); return ;;`
    return [`    '${after} ${text}') ${completed}`]
  })
}
