import { describe, test } from 'vitest'
import { testLedgerStore } from '../../src/stripe402/conformance/index.js'
import { HoldfastStore } from '../../src/stripe402/index.js'
import { onBothPaths } from '../api/support/paths.js'

onBothPaths((path) => {
  describe('HoldfastStore', () => {
    testLedgerStore({ test, makeStore: () => new HoldfastStore(path.hf), prunes: false })
  })
})
