import { command, genesisHash } from '../packages/holdfast/src/machine/index.js'
import type { Telemetry } from '../packages/holdfast/src/telemetry/index.js'
import { check } from './checker.js'
import { Clients } from './clients.js'
import { Faults } from './faults.js'
import { keys, Process, type Weather } from './process.js'
import { type Machines, Servers } from './servers.js'
import { World } from './world.js'

export const OPERATIONS = 200
const PROCESSES = 3
/** Then everything heals, whether callers are done or not. */
const FAULTY_MS = 30_000
const RESTS_MS = 8_000
const RESTS_MAX_MS = 60_000

export interface SimulationResult {
  readonly seed: number
  readonly problems: string[]
  readonly operations: number
  readonly entries: number
  readonly simulatedMs: number
  /** How often each thing happened that the engine has to set right. */
  readonly counts: ReadonlyMap<string, number>
  readonly trace: readonly string[]
}

/** One schedule: callers, processes and faults as the seed has them; then everything heals, and the history is judged. */
export async function simulate(seed: number, machines: Machines, traced = false): Promise<SimulationResult> {
  const world = new World(seed, traced)
  const { chance } = world
  const started = world.now
  const counts = new Map<string, number>()
  const telemetry: Telemetry = {
    count: (metric, labels = {}, by = 1) => {
      const name = labels.what ?? labels.verdict ?? labels.answer ?? metric
      counts.set(name, (counts.get(name) ?? 0) + by)
    },
    log: (level, event, facts) => world.tell(() => `${level} ${event} ${JSON.stringify(facts ?? {})}`),
  }
  const servers = await Servers.start(world, machines)
  const commits = new Map<string, number>()
  noteCommits(servers, commits, world)

  const ids = Array.from({ length: chance.integer(1, 4) }, (_, n) => `wallet-${n + 1}`)
  for (const id of ids) await open(servers, id)
  const memoryWallets = new Set(chance.happens(0.3) ? ids.filter(() => chance.happens(0.5)) : [])

  const weather: Weather = { lossy: 0, slow: 0 }
  let processes: Process[] = []
  let born = 0
  const start = (): void => {
    processes = [
      ...processes.filter(({ alive }) => alive),
      new Process(`process-${++born}`, world, servers, weather, telemetry),
    ]
  }
  for (let n = 0; n < PROCESSES; n += 1) start()
  const faults = new Faults(world, {
    servers,
    weather,
    processes: () => processes,
    replace: () => world.plan(chance.next() * 1_000, start),
  })
  const clients = new Clients(world, ids, memoryWallets, OPERATIONS, () => processes)

  await world.run(started + FAULTY_MS, () => clients.done)
  faults.heal()
  world.tell(() => 'all is well again')
  const problems: string[] = []
  if (!clients.done) await world.run(world.now + 300_000, () => clients.done)
  if (!clients.done) problems.push('callers still wait for an answer')
  await rest(world, servers)
  for (const id of ids) await closingCredit(world, processes, id, problems)
  await rest(world, servers)

  for (const { heard } of clients.history)
    telemetry.count?.('holdfast_decisions_total', { answer: `heard_${heard.type}` })
  problems.push(...check(servers.journal.wallets(), clients.history, commits, servers.redisForgot))
  let entries = 0
  for (const wallet of servers.journal.wallets()) entries += wallet.entries.length
  return {
    seed,
    problems,
    operations: clients.history.length,
    entries,
    simulatedMs: world.now - started,
    counts,
    trace: world.trace,
  }
}

/**
 * What nobody touches must come to rest by itself: what is pending gets appended, what is due expires. Every lease, spell and sweep is
 * over within the first seconds; then only holds are waited for, and not longer than any lasts and clocks were wrong.
 */
async function rest(world: World, { journal }: Servers): Promise<void> {
  const began = world.now
  await world.run(began + RESTS_MS, () => false)
  await world.run(began + RESTS_MAX_MS, () => [...journal.wallets()].every(({ row }) => row.reserved === 0))
}

/** The journal itself does not tell when: the checker needs to know, to the event. */
function noteCommits(servers: Servers, commits: Map<string, number>, world: World): void {
  const { journal } = servers
  const append = journal.append.bind(journal)
  journal.append = async (filed) => {
    const result = await append(filed)
    for (const [index, { entry }] of filed.entries()) {
      if (result.verdicts[index]?.type === 'appended') commits.set(entry.hash, world.now)
    }
    return result
  }
}

async function open(servers: Servers, id: string): Promise<void> {
  const ref = keys.ref(id)
  await servers.journal.open({
    ref,
    tenant: 'sim',
    id,
    currency: 'usd',
    creditLimit: 0,
    metadata: '',
    head: genesisHash(ref, 'usd'),
  })
}

/** A wallet that nobody can use any more is as bad as a wrong one. */
async function closingCredit(
  world: World,
  processes: readonly Process[],
  id: string,
  problems: string[],
): Promise<void> {
  const alive = processes.filter(({ alive }) => alive)
  for (const process of alive) {
    let heard: string | undefined
    process.engine
      .submit(keys.place(keys.ref(id)), command({ kind: 'credit', key: `closing-${process.name}`, amount: 1 }), {
        memory: false,
      })
      .then(
        () => {
          heard = 'yes'
        },
        (error) => {
          heard = String(error?.code ?? error)
        },
      )
    await world.run(world.now + 20_000, () => heard !== undefined)
    if (heard !== 'yes') problems.push(`${id} is stuck at ${process.name}: ${heard ?? 'no answer'}`)
  }
}
