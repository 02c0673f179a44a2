#!/usr/bin/env node
// `npm run check`: lint, format, types, packages and unused code. Every check runs, also after one that failed.
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { main, ROOT, setUp, tool } from './setup.mjs'

await main(async () => {
  await setUp({ build: false })
  const checks = [
    ['lint and format', tool('biome'), ['check', '--error-on-warnings', '.']],
    ['generated code in step', process.execPath, ['scripts/generate.mjs', '--check']],
    ['types of the packages', tool('tsc'), ['-b', '--pretty']],
    ['types of tests and tools', tool('tsc'), ['-p', 'tsconfig.tests.json', '--pretty']],
    ['unused code', tool('knip'), ['--no-progress']],
    ...publishedPackages().flatMap(({ name, folder }) => [
      [`${name}: package contents`, tool('publint'), ['--strict', folder]],
      [`${name}: types as seen by users`, tool('attw'), ['--pack', folder, '--profile', 'esm-only', '--quiet']],
    ]),
  ]
  let failed = 0
  for (const [what, file, args] of checks) {
    const { status, stdout, stderr } = spawnSync(file, args, { cwd: ROOT, encoding: 'utf8' })
    console.log(`${status === 0 ? 'ok    ' : 'FAILED'}  ${what}`)
    if (status === 0) continue
    failed++
    console.log(`${stdout}${stderr}`.trim().replaceAll(/^/gm, '        '))
  }
  console.log(failed === 0 ? 'All checks passed' : `${failed} of ${checks.length} checks failed`)
  return failed === 0 ? 0 : 1
})

function publishedPackages() {
  return readdirSync(join(ROOT, 'packages')).flatMap((name) => {
    const folder = `packages/${name}`
    const manifest = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'))
    return manifest.private ? [] : [{ name: manifest.name, folder }]
  })
}
