import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { HoldfastError } from 'holdfast'
import { SCOPES } from '../access/index.js'
import type { Backend } from '../lifecycle/index.js'
import { StartError } from '../lifecycle/start-error.js'

/** A key to begin with, for the person at this machine: made once, and kept where the data is, for its owner's eyes only. */
export async function devKey(dir: string, { keys, gate }: Pick<Backend, 'keys' | 'gate'>): Promise<string> {
  const file = join(dir, 'api-key')
  const kept = existsSync(file) ? readFileSync(file, 'utf8').trim() : ''
  if (kept !== '' && (await isGood(gate, kept))) return kept
  const { text } = await keys.create({ tenant: 'default', name: 'holdfast dev', scopes: SCOPES })
  keep(dir, file, text)
  return text
}

/** Another database may have been given since, or somebody has revoked it, or it is from before there were some of the scopes. */
async function isGood(gate: Backend['gate'], text: string): Promise<boolean> {
  try {
    const { scopes } = await gate.identify(`Bearer ${text}`)
    return SCOPES.every((scope) => scopes.includes(scope))
  } catch (error) {
    if (HoldfastError.is(error, 'unauthenticated')) return false
    throw error
  }
}

function keep(dir: string, file: string, text: string): void {
  try {
    if (!existsSync(dir)) {
      mkdirSync(dir, { recursive: true })
      writeFileSync(join(dir, '.gitignore'), '*\n')
    }
    writeFileSync(file, `${text}\n`, { mode: 0o600 })
    // The mode above is for a file that was not there.
    chmodSync(file, 0o600)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new StartError(
      `The API key can't be kept at ${file} (${code}). Choose a folder that you may write to: --data-dir`,
    )
  }
}
