/** The rights that a user of Redis needs, as the docs tell them. */
import { readFileSync } from 'node:fs'

const PAGE = new URL('../../../../../docs/operating/deployment.md', import.meta.url)
const [, line = ''] = /^user holdfast on >secret (.+)$/m.exec(readFileSync(PAGE, 'utf8')) ?? []
const words = line.split(' ')

export const RIGHTS = {
  /** In the order in which they are given: a later one takes from an earlier one. */
  commands: words.filter((word) => /^[+-]/.test(word)),
  others: words.filter((word) => !/^[+-]/.test(word)),
}
