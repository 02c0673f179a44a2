import { beforeEach, describe, expect, it } from 'vitest'
import { Circuit } from '../../src/engine/circuit.js'
import { HoldfastError } from '../../src/errors/index.js'
import { PostgresError } from '../../src/postgres/index.js'
import { TestClock } from './support/clock.js'

const PATIENCE_MS = 500

let clock: TestClock
let circuit: Circuit
let changes: boolean[]
let there: boolean
let probes: number
let owed: boolean
let writable: boolean

beforeEach(() => {
  clock = new TestClock()
  changes = []
  there = false
  probes = 0
  owed = false
  writable = true
  circuit = new Circuit(clock, {
    patienceMs: PATIENCE_MS,
    probe: async () => {
      probes += 1
      if (!there) throw new Error('away')
    },
    proveWrites: async () => writable,
    onChange: (open) => changes.push(open),
    owes: () => owed,
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

  describe('after a write has failed', () => {
    const write = (answer: Promise<unknown>, written = true) =>
      circuit.watchWrite(PATIENCE_MS, answer, () => written).catch(() => {})
    const fail = () => write(Promise.reject(new HoldfastError('unavailable', undefined, { outcome: 'not_executed' })))

    it('opens when the next one fails as well, whatever is read in between', async () => {
      await fail()
      clock.pass(PATIENCE_MS)
      circuit.worked()
      await fail()
      expect(circuit.open).toBe(true)
    })

    it('stays open for what is read and for probes, while something waits to be written, and closes when that is', async () => {
      owed = true
      there = true
      await fail()
      clock.pass(PATIENCE_MS)
      await fail()
      for (let seconds = 0; seconds < 10; seconds += 1) {
        circuit.worked()
        clock.pass(1_000)
        await turn()
      }
      expect([circuit.open, changes]).toEqual([true, [true]])
      expect(probes).toBeGreaterThan(3)
      await write(Promise.resolve(), false)
      expect(circuit.open).toBe(true)
      await write(Promise.resolve())
      expect([circuit.open, changes]).toEqual([false, [true, false]])
      const asked = probes
      clock.pass(10_000)
      await turn()
      expect(probes).toBe(asked)
    })

    it('is closed by a probe that can write, where nothing waits, so that somebody can find out', async () => {
      there = true
      writable = false
      await fail()
      clock.pass(PATIENCE_MS)
      await fail()
      clock.pass(1_200)
      await turn()
      circuit.release()
      expect([circuit.open, probes]).toEqual([true, 1])
      writable = true
      clock.pass(1_200)
      await turn()
      expect([circuit.open, changes]).toEqual([false, [true, false]])
    })

    it('forgets it while others are let in, and nothing waits: they will tell', async () => {
      await fail()
      circuit.release()
      clock.pass(PATIENCE_MS)
      circuit.worked()
      await fail()
      expect(circuit.open).toBe(false)
    })

    it('is closed by a probe that finds that the operator has acted: that was why', async () => {
      owed = true
      there = true
      await write(Promise.reject(new HoldfastError('reconcile_required')))
      expect([circuit.open, circuit.stop]).toEqual([true, expect.any(HoldfastError)])
      clock.pass(1_200)
      await turn()
      expect([circuit.open, circuit.stop]).toEqual([false, null])
    })

    it('takes one that gets no answer for one that failed, until it is answered', async () => {
      owed = true
      let answer: (value?: unknown) => void = () => {}
      const writing = write(
        new Promise((resolve) => {
          answer = resolve
        }),
      )
      clock.pass(PATIENCE_MS)
      circuit.worked()
      expect(circuit.open).toBe(true)
      answer()
      await writing
      expect(circuit.open).toBe(false)
    })

    it('goes by what is read, where a row was locked: that is no matter of others', async () => {
      await write(Promise.reject(new HoldfastError('unavailable', undefined, { outcome: 'retry' })))
      clock.pass(PATIENCE_MS)
      circuit.worked()
      await fail()
      expect(circuit.open).toBe(false)
    })
  })
})
