import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { Holdfast, HoldfastError, type LostEntry, type ReconcileReport } from 'holdfast'
import type { ReadConfig } from '../config/index.js'
import { openConnections } from '../lifecycle/index.js'
import { StartError } from '../lifecycle/start-error.js'
import { EXIT, type Run } from './command.js'
import { number, tableOf } from './table.js'

export const reconcile: Run = async (given, terminal) => {
  const { config } = given
  const dryRun = config.dryRun || !config.yes
  // Who only looks gets a file only where one is named.
  const file = config.export ?? (dryRun ? undefined : defaultFile())
  const lines = new LineFile(file)
  try {
    const report = await withHoldfast(given, (hf) =>
      hf.reconcile({ dryRun, onEntry: (entry) => lines.write(entry), onExported: () => lines.keep() }),
    )
    lines.keep()
    const exported = lines.written > 0 ? (file ?? null) : null
    terminal.print(config.json ? JSON.stringify({ ...report, export: exported }) : asText(report, exported, dryRun))
    return report.needed && !report.done ? EXIT.failed : EXIT.ok
  } finally {
    lines.close()
  }
}

const defaultFile = () => `holdfast-reconcile-${new Date().toISOString().replaceAll(':', '-')}.jsonl`

/** One line of JSON an entry. Made with the first, and never over something that is there. */
class LineFile {
  readonly #path: string | undefined
  #descriptor: number | undefined
  written = 0

  constructor(path: string | undefined) {
    this.#path = path
  }

  write(entry: LostEntry): void {
    if (this.#path === undefined) return
    this.#descriptor ??= this.#open(this.#path)
    writeSync(this.#descriptor, `${JSON.stringify(entry)}\n`)
    this.written += 1
  }

  #open(path: string): number {
    try {
      return openSync(path, 'wx', 0o600)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      const reason = code === 'EEXIST' ? 'there is such a file already, and it is not written over' : code
      throw new StartError(`--export: ${path} can't be made: ${reason}`)
    }
  }

  /** On disk before anything goes on: then it is all that is left of these entries. */
  keep(): void {
    if (this.#descriptor !== undefined) fsyncSync(this.#descriptor)
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor)
  }
}

async function withHoldfast<T>({ config, nameOf }: ReadConfig, work: (hf: Holdfast) => Promise<T>): Promise<T> {
  const { redisUrl, databaseUrl, schema } = config as { redisUrl: string; databaseUrl: string; schema: string }
  // Says which of the two is not there, as a start does.
  const connections = await openConnections({
    redisUrl,
    databaseUrl,
    schema,
    redisConnections: 1,
    databaseConnections: 2,
    migrate: false,
    names: { redis: nameOf('redisUrl'), postgres: nameOf('databaseUrl') },
    telemetry: {},
  })
  await connections.close()
  try {
    const hf = await Holdfast.connect({
      redis: redisUrl,
      postgres: databaseUrl,
      schema,
      migrate: false,
      saleAttempts: false,
    })
    try {
      return await work(hf)
    } finally {
      await hf.close()
    }
  } catch (error) {
    if (HoldfastError.is(error, 'unavailable')) throw new StartError(error.message)
    throw error
  }
}

function asText(report: ReconcileReport, file: string | null, dryRun: boolean): string {
  const { needed, done, because, wallets, walletsAhead, entries, acknowledged, forgotten, ahead } = report
  const looked = `${number(wallets)} wallets in Redis looked at`
  if (!needed) return `Postgres has all that it should have; nothing to do. ${looked}.`
  const lines = [`Postgres lacks entries that were acknowledged${because ? `: ${because}` : ''}.`, '']
  if (ahead.length > 0) lines.push(walletTable(ahead), '')
  if (walletsAhead > ahead.length) lines.push(`… and ${number(walletsAhead - ahead.length)} more wallets`, '')
  lines.push(
    `${looked}, ${number(walletsAhead)} know more than the journal: ${number(entries)} entries, of which ${number(acknowledged)} were ` +
      `in it${forgotten > 0 ? `; ${number(forgotten)} more are lost that Redis does not remember either` : ''}.`,
  )
  if (file) lines.push(`They are in ${file}, one line of JSON each.`)
  if (done) lines.push('Postgres has won: everything goes on from what it has.')
  else if (dryRun) lines.push('Nothing was changed. Run it again with --yes to go on from what Postgres has.')
  return lines.join('\n')
}

function walletTable(ahead: ReconcileReport['ahead']): string {
  return tableOf(
    ['TENANT', 'WALLET', 'JOURNAL', 'REDIS', 'ENTRIES', 'FORGOTTEN', 'AVAILABLE', 'WAS'],
    ahead.map((one) => [
      one.tenant,
      one.wallet ?? `${one.ref} (not in Postgres)`,
      number(one.journalSeq),
      number(one.redisSeq),
      number(one.entries),
      number(one.forgotten),
      number(one.journalAvailable),
      number(one.redisAvailable),
    ]),
  )
}
