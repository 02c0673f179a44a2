import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Command, command, MAX_AMOUNT, moveWords } from '../../src/machine/index.js'
import type { Answer } from '../../src/sequencer/index.js'
import { AcquaintedSequencer } from '../sequencer/support/acquainted.js'
import { Chance } from './chance.js'
import { START } from './commands.js'
import { flavourOf, LifeCommands } from './life-commands.js'
import { expectStock, placeOf, type Server, servers } from './servers.js'
import { TENDED_MAX, Twin } from './twin.js'

/**
 * Long lives of wallets and sales, step for step beside the machine in TypeScript: rings that grow and forget, acknowledgements that lag, holds by
 * the hundred, refunds that are swept away, loads in the middle with what was acknowledged from memory, clocks that go back, several wallets a call.
 *
 * `LIFE=<seed>` lives that one life again, of which a failure tells.
 */
const ONE_LIFE = process.env.LIFE
const LIVES_MS = 15_000
const LIVES_MAX_MS = 120_000

/** Lives in which these never come up show nothing: they go on until each has, within reason. */
const WANTED = [
  ...['accepted', 'rejected', 'replay', 'conflict', 'seen', 'full', 'more', 'facts', 'touched'],
  ...['grown ring', 'swept refund', 'loaded', 'decided again', 'lost from memory', 'tended'],
]

let wallets = 0

describe.each(Object.keys(servers))('long lives on %s', (name) => {
  let server: Server
  beforeAll(async () => {
    server = await (servers[name] as () => Promise<Server>)()
  })
  afterAll(() => server.close())

  test('are the same in Lua as in TypeScript', { timeout: 2 * LIVES_MAX_MS }, async () => {
    const tally = new Map<string, number>()
    const missing = () => WANTED.filter((what) => !tally.has(what))
    const begunAt = Date.now()
    let seed = Number(ONE_LIFE ?? begunAt % 1_000_000_000)
    const goesOn = () => Date.now() - begunAt < (missing().length > 0 ? LIVES_MAX_MS : LIVES_MS)
    do {
      await new Life(server, seed, tally).live().catch((error: Error) => {
        error.message = `LIFE=${seed}: ${error.message}`
        throw error
      })
      seed += 1
    } while (ONE_LIFE === undefined && goesOn())
    if (ONE_LIFE === undefined) expect(missing()).toEqual([])
  })
})

class Life {
  readonly #server: Server
  readonly #chance: Chance
  readonly #tally: Map<string, number>
  readonly #commands: LifeCommands
  readonly #sequencer: AcquaintedSequencer
  readonly #twins: Twin[]
  readonly #pendingMax: number
  /** Often so many at once that more are due together than one step lets expire. */
  readonly #hasBursts: boolean
  readonly #isLoadedAnew: boolean
  readonly #clockGoesBack: boolean
  #now = START

  constructor(server: Server, seed: number, tally: Map<string, number>) {
    const chance = new Chance(seed)
    this.#server = server
    this.#chance = chance
    this.#tally = tally
    this.#pendingMax = chance.of([40, 200, 1_000])
    this.#commands = new LifeCommands(chance, flavourOf(chance))
    this.#hasBursts = chance.happens(0.3)
    this.#isLoadedAnew = chance.happens(0.6)
    this.#clockGoesBack = chance.happens(0.5)
    const sales = chance.happens(0.3) ? 0.8 : 0
    this.#twins = Array.from({ length: chance.of([1, 1, 2, 3]) }, () => {
      wallets += 1
      return new Twin(placeOf(`life-${wallets}`, chance.happens(sales)), chance.happens(0.5), tally)
    })
    const options = { aheadMaxMs: 0, helpAfterMs: 10_000, idleAfterMs: 1e15, pendingMax: this.#pendingMax }
    this.#sequencer = new AcquaintedSequencer(server.runner, { ...options, now: () => this.#now })
  }

  async live(): Promise<void> {
    const chance = this.#chance
    for (const twin of this.#twins) await this.#load(twin)
    const rounds = chance.happens(0.2) ? chance.int(60, 200) : chance.int(5, 60)
    for (let round = 0; round < rounds; round += 1) {
      this.#now += chance.happens(0.15) ? chance.int(200, 900) : chance.int(0, 60)
      if (this.#clockGoesBack && chance.happens(0.1)) this.#now -= chance.int(1, 300)
      for (const twin of this.#twins) {
        if (this.#isLoadedAnew && round > 0 && chance.happens(0.06)) await this.#load(twin)
        if (chance.happens(0.5)) twin.acked = chance.int(twin.acked, twin.state.seq)
        if (chance.happens(0.05)) twin.known = twin.acked
      }
      if (chance.happens(0.08)) await this.#tend()
      await this.#decide(round)
    }
    for (const twin of this.#twins) await this.#compare(twin)
  }

  /** With a journal that has all of it, or not: what was not acknowledged from memory behind its end never was. */
  async #load(twin: Twin): Promise<void> {
    const chance = this.#chance
    const { place, memory, acked, state } = twin
    const seq = chance.happens(0.3) ? state.seq : chance.int(acked, state.seq)
    const clock = chance.of([0, this.#now, this.#now + 50])
    const { lost, pending, ...loaded } = twin.reload(seq, state.epoch + chance.int(1, 10_000_000), clock)
    if (place.isSale) await this.#sequencer.stage('test', place, loaded.state)
    const reply = await this.#sequencer.install('test', { place, memory, deadline: MAX_AMOUNT, clock, ...loaded })
    expect(reply).toEqual({ type: 'installed', lost })
    expect((await this.#sequencer.look(place, 0, 'test', 0)).pending).toEqual(pending)
    this.#count('loaded')
  }

  async #tend(): Promise<void> {
    const known = this.#twins.map(({ place, state, acked }) => ({ place, epoch: state.epoch, acked }))
    const runs = await this.#sequencer.tend(placeOf('', false).agendaKey, known)
    const expected = this.#twins.map((twin) => {
      twin.begin()
      twin.tend(this.#now)
      return this.#run(twin, twin.acked, TENDED_MAX)
    })
    expect(runs).toEqual(expected)
    this.#count('tended')
  }

  async #decide(round: number): Promise<void> {
    const chance = this.#chance
    const isBurst = this.#hasBursts && round % 5 < 2
    const size = isBurst ? 60 : chance.happens(0.2) ? chance.int(8, 60) : chance.int(1, 6)
    const knowledge = this.#twins.map(({ place, state, acked, known }) => {
      return { place, epochMin: 0, epoch: state.epoch, acked, known }
    })
    for (const twin of this.#twins) twin.begin()
    const asked = Array.from({ length: size }, (_, n) => {
      const wallet = chance.int(0, this.#twins.length - 1)
      const twin = this.#twins[wallet] as Twin
      const drawn = twin.journal.length === 0 ? beginning(twin, n) : this.#draw(twin, isBurst)
      const memory = twin.memory && drawn.kind !== 'refund' && drawn.kind !== 'touch' && chance.happens(0.5)
      const answer = twin.answer(drawn, memory, this.#now, this.#pendingMax)
      return { wallet, command: drawn, memory, deadline: MAX_AMOUNT, answer }
    })
    const { runs, answers } = await this.#sequencer.decide({ wallets: knowledge, commands: asked })
    for (const [n, { command, answer }] of asked.entries()) {
      expect(answers[n], `round ${round}: ${JSON.stringify(command)}`).toEqual(answer satisfies Answer)
      this.#count(answer.type)
    }
    for (const [n, twin] of this.#twins.entries()) {
      const from = Math.max(twin.acked, twin.known)
      expect(runs[n]).toEqual(this.#run(twin, from, this.#pendingMax + 64))
      twin.known = twin.state.seq
    }
  }

  /** Something new mostly; now and then what came before, or something else under the same key. */
  #draw(twin: Twin, isBurst: boolean): Command {
    const chance = this.#chance
    if (isBurst && !twin.place.isSale && twin.state.holds.size < 300) return this.#commands.shortHold()
    const drawn = this.#commands.next(twin)
    if (!chance.happens(0.1)) return drawn
    const from = chance.happens(0.8) ? Math.max(0, twin.journal.length - 20) : 0
    const key = twin.journal[chance.int(from, twin.journal.length - 1)]?.key ?? ''
    const before = twin.commandOf(key)
    if (!before || chance.happens(0.7)) return before ?? drawn
    // Their keys are their names.
    const isNamed = drawn.kind === 'touch' || ['hold', 'meter', 'checkout'].includes(drawn.kind)
    return isNamed ? drawn : { ...drawn, key }
  }

  #run({ state, acked, journal }: Twin, from: number, most: number) {
    return { epoch: state.epoch, acked, entries: journal.slice(from, from + most) }
  }

  async #compare(twin: Twin): Promise<void> {
    twin.check()
    const [hot] = await this.#sequencer.inspect([twin.place])
    const { holds, base, refundedByEntry, closedHolds, stock, ...core } = twin.state
    expect(hot?.core).toMatchObject({ ...core, open: holds.size })
    expect(hot).toMatchObject({ why: 'trusted' })
    expect(hot?.holds).toEqual(holds)
    if (stock) await expectStock(this.#server.runner, twin.place, stock, twin.state.epoch)
  }

  #count(what: string): void {
    this.#tally.set(what, (this.#tally.get(what) ?? 0) + 1)
  }
}

/** So that there is something to spend, or to sell. */
function beginning({ place }: Twin, n: number): Command {
  if (!place.isSale) return command({ kind: 'credit', key: `first ${n}`, amount: 3_000 })
  return command({ kind: 'take', key: `first ${n}`, counter: 'stock', also: moveWords({ total: 300, lines: [] }) })
}
