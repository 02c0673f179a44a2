import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { CAUSES } from '../../src/index.js'

it('docs/operating/audit.md lists every cause, who decides and what it means', () => {
  const page = readFileSync(fileURLToPath(new URL('../../../../docs/operating/audit.md', import.meta.url)), 'utf8')
  const listed = [...page.matchAll(/^\| `(\w+)` \| (\w+) \| (.+) \|$/gm)].map((row) => row.slice(1))
  const table = Object.entries(CAUSES).map(([cause, { decides, meaning }]) => [cause, decides, meaning])
  expect(listed).toEqual(table)
})
