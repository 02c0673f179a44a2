import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { StartError } from '../lifecycle/start-error.js'
import { EXIT } from './command.js'

/** Where this package lies when it is part of a clone. */
const ROOT = fileURLToPath(new URL('../../../..', import.meta.url))

/**
 * Benchmarks, simulator and chaos harness do their work on the sources, so they are in the repository and not in the package. From a clone
 * these commands are what `npm run …` is.
 */
export async function runInWorkshop(name: string, args: readonly string[]): Promise<number> {
  const script = join(ROOT, 'scripts', `${name}.mjs`)
  if (!isClone() || !existsSync(script)) {
    throw new StartError(
      `${name} works on the sources of Holdfast, which are not part of this package: clone the repository, and there run "npm run ${name}"`,
    )
  }
  const child = spawn(process.execPath, [script, ...args], { stdio: 'inherit' })
  // Whoever presses Ctrl-C reaches both; who stops this process alone means the other too.
  const passOn = (signal: NodeJS.Signals) => child.kill(signal)
  process.on('SIGTERM', passOn)
  process.on('SIGINT', () => {})
  const [code] = (await once(child, 'exit')) as [number | null]
  return code ?? EXIT.failed
}

function isClone(): boolean {
  const manifest = join(ROOT, 'package.json')
  return existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).name === 'holdfast-workspace'
}
