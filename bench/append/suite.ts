/** What one entry costs on its way into the journal: processor time in Node and in Postgres, and bytes of write-ahead log. */
import { startPostgres } from '@holdfast/services'
import { migrate, Postgres } from 'holdfast'
import pg from 'pg'
import { type Filed, PostgresJournal } from '../../packages/holdfast/src/journal/index.js'
import type { Suite } from '../harness/command.js'
import { treeCpuMs } from '../harness/cpu.js'
import { describeMachine, type Machine } from '../harness/machine.js'
import { slowerDisk } from '../harness/servers.js'
import { type Measured, measured } from '../harness/statistics.js'
import { LANES, PLANS, type Plan } from './plan.js'
import { render } from './render.js'
import { Wallets } from './wallets.js'

export type Place = 'spread' | 'hot'

export interface Cell {
  readonly place: Place
  readonly entriesPerStatement: number
  readonly nodeUs: Measured
  readonly postgresUs: Measured
  readonly walBytes: Measured
  readonly entriesPerSecond: Measured
}

export interface AppendData {
  readonly suite: 'append'
  readonly commandLine: string
  readonly machine: Machine
  readonly plan: Plan
  readonly cells: readonly Cell[]
  /** What was sent, and what the journal says it has. */
  readonly sent: number
  readonly kept: number
}

interface Sample {
  readonly nodeUs: number
  readonly postgresUs: number
  readonly walBytes: number
  readonly entriesPerSecond: number
}

export const runAppend: Suite = async ({ size, commandLine, say, commitDelayMs }) => {
  const plan = PLANS[size]
  say('append: starting Postgres')
  const server = await startPostgres({ durable: true, settings: slowerDisk(commitDelayMs) })
  const postgres = new Postgres(server.url)
  const asker = new pg.Client(server.url)
  try {
    await asker.connect()
    await migrate(postgres)
    const track = new Track(new PostgresJournal(postgres), server.pid as number, asker)
    say(`append: opening ${plan.wallets} wallets`)
    const places = {
      spread: await track.open(Math.ceil(plan.wallets / LANES)),
      hot: await track.open(1),
    }
    const samples = new Map<string, Sample[]>()
    // The first round only warms up. Every later one goes through all cells: what disturbs one disturbs all alike.
    for (let round = 0; round <= plan.rounds; round += 1) {
      for (const [place, lanes] of Object.entries(places)) {
        for (const each of plan.entriesPerStatement) {
          const sample = await track.run(lanes, each, statementsOf(plan, each))
          const name = `${place} ${each}`
          if (round > 0) samples.set(name, [...(samples.get(name) ?? []), sample])
        }
      }
      say(`append: round ${round} of ${plan.rounds}`)
    }
    const cells = [...samples].map(([name, rounds]) => cellOf(name, rounds))
    const { rows } = await asker.query<{ count: string }>('SELECT count(*) FROM holdfast.entries')
    const data: AppendData = {
      suite: 'append',
      commandLine,
      machine: describeMachine(),
      plan,
      cells,
      sent: track.sent,
      kept: Number(rows[0]?.count),
    }
    return { suite: 'append', failures: failuresOf(data), markdown: render(data), plots: new Map(), data }
  } finally {
    await asker.end()
    await postgres.close()
    await server.stop()
  }
}

/** Shared out over the lanes, so at least one each. */
function statementsOf({ entries, statementsMax }: Plan, entriesPerStatement: number): number {
  return Math.max(LANES, Math.min(statementsMax, Math.ceil(entries / entriesPerStatement)))
}

class Track {
  readonly #journal: PostgresJournal
  readonly #pid: number
  readonly #asker: pg.Client
  sent = 0

  constructor(journal: PostgresJournal, pid: number, asker: pg.Client) {
    this.#journal = journal
    this.#pid = pid
    this.#asker = asker
  }

  async open(walletsPerLane: number): Promise<Wallets[]> {
    this.sent += walletsPerLane * LANES
    return Promise.all(Array.from({ length: LANES }, () => Wallets.open(this.#journal, walletsPerLane)))
  }

  async run(lanes: readonly Wallets[], entriesPerStatement: number, statements: number): Promise<Sample> {
    // Decided beforehand: only the append is to be measured.
    const batches = lanes.map((wallets) =>
      Array.from({ length: Math.ceil(statements / LANES) }, () => wallets.next(entriesPerStatement)),
    )
    const before = await this.#meter()
    await Promise.all(batches.map((lane) => this.#appendAll(lane)))
    const after = await this.#meter()
    const entries = batches.flat(2).length
    this.sent += entries
    return {
      nodeUs: (after.nodeUs - before.nodeUs) / entries,
      postgresUs: ((after.postgresMs - before.postgresMs) * 1_000) / entries,
      walBytes: (after.wal - before.wal) / entries,
      entriesPerSecond: (entries * 1_000) / (after.at - before.at),
    }
  }

  async #appendAll(batches: readonly (readonly Filed[])[]): Promise<void> {
    for (const filed of batches) {
      const { verdicts } = await this.#journal.append(filed)
      if (verdicts.some(({ type }) => type !== 'appended')) throw new Error('An append was refused')
    }
  }

  async #meter() {
    const { rows } = await this.#asker.query<{ wal: string }>("SELECT pg_current_wal_insert_lsn() - '0/0' AS wal")
    const { user, system } = process.cpuUsage()
    return { at: performance.now(), wal: Number(rows[0]?.wal), nodeUs: user + system, postgresMs: treeCpuMs(this.#pid) }
  }
}

function cellOf(name: string, rounds: readonly Sample[]): Cell {
  const [place, each] = name.split(' ')
  const of = (read: (sample: Sample) => number) => measured(rounds.map(read))
  return {
    place: place as Place,
    entriesPerStatement: Number(each),
    nodeUs: of(({ nodeUs }) => nodeUs),
    postgresUs: of(({ postgresUs }) => postgresUs),
    walBytes: of(({ walBytes }) => walBytes),
    entriesPerSecond: of(({ entriesPerSecond }) => entriesPerSecond),
  }
}

/** A benchmark that does nothing, or not what it says, fails. */
export function failuresOf({ sent, kept }: Pick<AppendData, 'sent' | 'kept'>): string[] {
  return sent === kept ? [] : [`append: ${sent} entries sent, ${kept} kept`]
}
