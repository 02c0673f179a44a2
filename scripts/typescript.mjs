// Runs a TypeScript program of this repository, such as sim/main.ts. It uses the sources of the library, like the tests
// do, so it can look behind the published surface without meeting a second copy of it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { passOnSignals } from './processes.mjs'
import { CACHE, ROOT, SetupError, setUp } from './setup.mjs'

/** @returns its exit code */
export async function runTypeScript(entry, args) {
  await setUp()
  if (!existsSync(join(ROOT, entry))) throw new SetupError(`${entry} is not there.`)
  const { build } = await import('esbuild')
  const outfile = join(CACHE, `${entry.replaceAll('/', '-')}.mjs`)
  await build({
    absWorkingDir: ROOT,
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    sourcemap: true,
    // Dependencies stay what they are, with their files around them; only the library is taken from its sources.
    packages: 'external',
    alias: {
      'holdfast/primitives': join(ROOT, 'packages/holdfast/src/primitives/index.ts'),
      'holdfast/stripe402': join(ROOT, 'packages/holdfast/src/stripe402/index.ts'),
      holdfast: join(ROOT, 'packages/holdfast/src/index.ts'),
    },
    logLevel: 'warning',
  })
  const child = spawn(process.execPath, ['--enable-source-maps', outfile, ...args], { cwd: ROOT, stdio: 'inherit' })
  passOnSignals(child)
  const [code] = await once(child, 'exit')
  return code ?? 1
}
