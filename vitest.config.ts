import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url))

/** The simulator's schedules take minutes, of what the others leave of the machine: begun first, they are through before them. */
const BEGUN_FIRST = ['sim/test/schedules.test.ts', 'sim/test/mutants.test.ts'].map(at)

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isFirst = ({ moduleId }: TestSpecification): boolean => BEGUN_FIRST.includes(moduleId)
    const sorted = await super.sort(files)
    return [...sorted.filter(isFirst), ...sorted.filter((file) => !isFirst(file))]
  }
}

export default defineConfig({
  resolve: {
    // Tests run the sources, not the last build.
    alias: {
      '@holdfast/services': at('packages/services/src/index.ts'),
      '@holdfast/server': at('packages/server/src/index.ts'),
      // The longer first: an alias also takes what lies below it.
      'holdfast/stripe402/conformance': at('packages/holdfast/src/stripe402/conformance/index.ts'),
      'holdfast/primitives': at('packages/holdfast/src/primitives/index.ts'),
      'holdfast/stripe402': at('packages/holdfast/src/stripe402/index.ts'),
      holdfast: at('packages/holdfast/src/index.ts'),
    },
  },
  test: {
    include: ['packages/*/test/**/*.test.ts', '{sim,chaos,bench}/test/**/*.test.ts', 'test/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // What comes at once on a machine at rest may take its time on a busy one.
    expect: { poll: { timeout: 20_000 } },
    globalSetup: at('test/setup.ts'),
    // Two cores: what a file runs at once are processes that keep one busy each.
    maxConcurrency: 2,
    // Most files wait for servers most of the time.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
  },
})
