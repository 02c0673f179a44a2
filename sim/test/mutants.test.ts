import { describe, expect, it } from 'vitest'
import { HARMLESS, MUTANTS } from '../mutants/index.js'
import { Build } from './runs.js'

const HARMLESS_SCHEDULES = 12

describe.concurrent('a rule left out is found', () => {
  it.for(MUTANTS)('$rule: $without', { timeout: 600_000 }, async (mutant, { expect }) => {
    const build = await Build.of(mutant)
    try {
      const which = ['--from', `${mutant.from ?? 1}`, '--seeds', `${mutant.within}`]
      const { finds = /./ } = mutant
      const { report } = await build.run(...which, '--jobs', '1', ...(mutant.finds ? [] : ['--first-failure']))
      const found = report.failures.flatMap(({ problems }) => problems.filter((problem) => finds.test(problem)))
      expect(found.length, `nothing of that kind in ${mutant.within} schedules`).toBeGreaterThan(0)
    } finally {
      build.remove()
    }
  })
})

describe.concurrent('what is only there for speed is not needed for being right', () => {
  it.for(HARMLESS)('$rule', { timeout: 600_000 }, async (mutant, { expect }) => {
    const build = await Build.of(mutant)
    try {
      const { report, output } = await build.run('--seeds', `${HARMLESS_SCHEDULES}`, '--jobs', '1')
      expect(report.failures, output).toEqual([])
    } finally {
      build.remove()
    }
  })
})

describe('a patch', () => {
  it('that does not fit its source any more is an error', async () => {
    const patches = [{ file: 'sim/database.ts', find: 'what is not there', replace: '' }]
    await expect(Build.of({ rule: 'made up', patches })).rejects.toThrow('made up: sim/database.ts does not contain')
  })
})
