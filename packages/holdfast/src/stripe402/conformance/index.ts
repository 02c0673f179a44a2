/**
 * What a stripe402 store must do, as tests for any runner that has `test(name, body)`:
 *
 *   import { test } from 'node:test'                  // or 'vitest'
 *   import { testStripe402Store } from 'holdfast/stripe402/conformance'
 *
 *   testStripe402Store({ test, makeStore: () => new MyStore() })
 *
 * `testStripe402Store` asks for the five published methods, `testLedgerStore` for everything that the stores of Holdfast have.
 */
export { testLedgerStore } from './ledger.js'
export { testStripe402Store } from './published.js'
export type { LedgerSuite, Suite, TestFunction } from './subject.js'
