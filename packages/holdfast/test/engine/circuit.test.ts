import { beforeEach, describe, expect, it } from 'vitest'
import { Circuit } from '../../src/engine/circuit.js'
import { PostgresError } from '../../src/postgres/index.js'
import { TestClock } from './support/clock.js'

const PATIENCE_MS = 500

let clock: TestClock
let circuit: Circuit
let changes: boolean[]
let there: boolean
let probes: number

beforeEach(() => {
  clock = new TestClock()
  changes = []
  there = false
  probes = 0
  circuit = new Circuit(clock, {
    patienceMs: PATIENCE_MS,
    probe: async () => {
      probes += 1
      if (!there) throw new Error('away')
    },
    onChange: (open) => changes.push(open),
  })
})

/** Lets what a probe has found out be heard. */
const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('a circuit', () => {
  it('opens when failures go on for longer than its patience', () => {
    circuit.failed()
    circuit.failed()
    clock.pass(PATIENCE_MS - 1)
    circuit.failed()
    expect(circuit.open).toBe(false)
    clock.pass(1)
    circuit.failed()
    expect([circuit.open, changes]).toEqual([true, [true]])
  })

  it('begins anew with everything that works', () => {
    circuit.failed()
    clock.pass(PATIENCE_MS)
    circuit.worked()
    circuit.failed()
    clock.pass(PATIENCE_MS - 1)
    circuit.failed()
    expect(circuit.open).toBe(false)
  })

  it('counts the time for which a call has waited in vain', () => {
    const begunAt = clock.now()
    clock.pass(PATIENCE_MS)
    circuit.failed(begunAt)
    expect(circuit.open).toBe(true)
  })

  it('but not where something else has worked meanwhile', () => {
    const begunAt = clock.now()
    clock.pass(PATIENCE_MS - 1)
    circuit.worked()
    clock.pass(1)
    circuit.failed(begunAt)
    expect(circuit.open).toBe(false)
  })

  it('stays closed while all that is wrong is that others are in the way: it has answered', () => {
    for (const sqlstate of ['55P03', '40P01', '55P03']) {
      circuit.failedWith(new PostgresError('retry', 'undone', { sqlstate }))
      clock.pass(PATIENCE_MS)
    }
    expect(circuit.open).toBe(false)
    const cut = () => circuit.failedWith(new PostgresError('not_executed', 'the connection was cut'))
    cut()
    clock.pass(PATIENCE_MS)
    cut()
    expect(circuit.open).toBe(true)
  })

  it('closes when a probe finds it there, and probes less and less often until then', async () => {
    circuit.failed(clock.now() - PATIENCE_MS)
    for (let seconds = 0; seconds < 10; seconds += 1) {
      clock.pass(1_000)
      await turn()
    }
    expect(circuit.open).toBe(true)
    expect(probes).toBeGreaterThan(3)
    expect(probes).toBeLessThanOrEqual(10)
    there = true
    clock.pass(1_200)
    await turn()
    expect([circuit.open, changes]).toEqual([false, [true, false]])
    const asked = probes
    clock.pass(10_000)
    await turn()
    expect(probes).toBe(asked)
  })

  it('asks nobody any more once it is closed down', async () => {
    circuit.failed(clock.now() - PATIENCE_MS)
    circuit.close()
    clock.pass(10_000)
    await turn()
    expect(probes).toBe(0)
  })
})
