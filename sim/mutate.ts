import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { Mutant } from './mutants/index.js'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Builds the simulator with a mutant's patches in it. A patch that no longer fits its source is an error, not a pass. */
export async function buildMutant({ rule, patches }: Pick<Mutant, 'rule' | 'patches'>, outfile: string): Promise<void> {
  const sources = new Map<string, string>()
  for (const { file, find, replace } of patches) {
    const path = join(ROOT, file)
    const source = sources.get(path) ?? readFileSync(path, 'utf8')
    if (!source.includes(find)) throw new Error(`${rule}: ${file} does not contain ${JSON.stringify(find)}`)
    sources.set(
      path,
      source.replaceAll(find, () => replace),
    )
  }
  await build({
    absWorkingDir: ROOT,
    entryPoints: ['sim/main.ts'],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: 'external',
    logLevel: 'error',
    plugins: [
      {
        name: 'patches',
        setup: ({ onLoad }) =>
          onLoad({ filter: /\.ts$/ }, ({ path }) => {
            const contents = sources.get(path)
            return contents === undefined ? undefined : { contents, loader: 'ts' as const }
          }),
      },
    ],
  })
}
