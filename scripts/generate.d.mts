/** Types for the tests, which compile their own small scripts through the same code. */

export interface CompiledScript {
  name: string
  sha1: string
  keys: { min: number; variable: boolean }
  resend: 'safe' | 'never'
  batchMax: number | null
  batchArg: number
  readonly: boolean
  source: string
}

export interface ScriptSource {
  name: string
  source: string
  file?: string
  include?: (name: string) => { file: string; source: string } | undefined
}

export class SourceError extends Error {}

export function compileScript(script: ScriptSource): CompiledScript

/** The files that were not in step, relative to `root`. */
export function generate(options?: { root?: string; check?: boolean }): string[]
