import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url))

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
    maxWorkers: 2,
  },
})
