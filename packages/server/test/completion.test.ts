import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { run } from './support/holdfast.js'

const execute = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'holdfast completion '))
afterAll(() => rmSync(folder, { recursive: true }))

/** Zsh completes only for one who types: a terminal of its own, into which it is typed. */
const ZSH = `
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "stty -echo; PS1=; autoload -Uz compinit; compinit -u -D; source '$1'; LISTMAX=0; echo READ''Y"
zpty -r -m shell line '*READY*'
zpty -w -n shell "$2"$'\\t\\t'
zpty -r -m shell line "*$3*"
print -r -- "$line"`

/** What each shell offers at the end of a line: the words, in the order of the alphabet. */
const SHELLS: Record<string, (script: string, line: string) => Promise<string[]>> = {
  bash: async (script, line) => {
    const program = `source "$1"; read -ra COMP_WORDS <<< "$2"; [[ "$2" == *' ' ]] && COMP_WORDS+=('')
      COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _holdfast; printf '%s\\n' "\${COMPREPLY[@]}"`
    const { stdout } = await execute('bash', ['--noprofile', '--norc', '-c', program, 'bash', script, line])
    return stdout.split('\n').filter(Boolean).sort()
  },
  fish: async (script, line) => {
    const program = 'source $argv[1]; complete -C $argv[2]'
    const { stdout } = await execute('fish', ['--no-config', '-c', program, script, line])
    const words = stdout.split('\n').map((one) => one.split('\t')[0] as string)
    return words.filter(Boolean).sort()
  },
}

const isInstalled = (name: string) =>
  (process.env.PATH ?? '').split(delimiter).some((place) => existsSync(join(place, name)))

const CASES: [line: string, words: string[]][] = [
  ['holdfast ke', ['keys']],
  ['holdfast keys r', ['revoke']],
  ['holdfast wallet un', ['unfreeze']],
  ['holdfast flags u', ['unkill']],
  ['holdfast flags set new-checkout --state ', ['off', 'on']],
  ['holdfast wallet settle alice call-17 1700 --be', ['--beyond']],
  ['holdfast wallet settle alice call-17 1700 --beyond ', ['available', 'reject']],
  ['holdfast serve --log-level e', ['error']],
  ['holdfast completion z', ['zsh']],
  ['holdfast wallet credit alice --key ', []],
]

describe('holdfast completion', () => {
  const scriptOf = (shell: string) => join(folder, `completion.${shell}`)
  beforeAll(async () => {
    for (const shell of ['bash', 'zsh', 'fish']) {
      const { code, stdout } = await run(['completion', shell])
      expect(code).toBe(0)
      writeFileSync(scriptOf(shell), stdout)
    }
  })

  it.each(Object.keys(SHELLS).filter(isInstalled))('is understood by a real %s', async (shell) => {
    const offered = SHELLS[shell] as (typeof SHELLS)[string]
    for (const [line, words] of CASES) expect([line, await offered(scriptOf(shell), line)]).toEqual([line, words])
  })

  it.each(['zsh'].filter(isInstalled))('is understood by a real %s', async () => {
    const program = join(folder, 'type.zsh')
    writeFileSync(program, ZSH)
    const type = (line: string, until: string) =>
      execute('zsh', ['-f', program, scriptOf('zsh'), line, until], { timeout: 20_000 })
    expect((await type('holdfast wallet unf', 'unfreeze')).stdout).toContain('unfreeze')
    expect((await type('holdfast serve --log-level ', 'silent')).stdout).toContain('debug')
  })

  it('offers files where a file is expected', async () => {
    writeFileSync(join(folder, 'lost entries.jsonl'), '')
    const program = `cd "$2"; source "$1"; COMP_WORDS=(holdfast reconcile --export lost); COMP_CWORD=3; _holdfast
      printf '%s' "\${COMPREPLY[*]}"`
    const args = ['--noprofile', '--norc', '-c', program, 'bash', scriptOf('bash'), folder]
    expect((await execute('bash', args)).stdout).toBe('lost entries.jsonl')
  })

  it('knows no other shell', async () => {
    const { code, stderr } = await run(['completion', 'tcsh'])
    expect(code).toBe(2)
    expect(stderr).toContain('<shell>: expected one of bash, zsh, fish, got "tcsh"')
  })
})
