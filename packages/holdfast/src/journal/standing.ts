import type { Transaction } from '../postgres/index.js'
import { bytesArray } from './array-text.js'
import type { Standing, Witness } from './types.js'

/** The way to ask: a pool, or one connection of which it is not known yet which database it leads to. */
export type Ask = Transaction['query']

interface StandingRow {
  floor: string
  settled: string
  stopped_at: string | null
  stopped_because: string | null
  missing: number[] | null
}

export async function prove(ask: Ask, witnesses: readonly Witness[]): Promise<Standing> {
  const [row] = await ask<StandingRow>('proveStanding', [
    `{${witnesses.map(({ ref }) => ref)}}`,
    `{${witnesses.map(({ epoch }) => epoch)}}`,
    `{${witnesses.map(({ seq }) => seq)}}`,
    bytesArray(witnesses.map(({ hash }) => hash)),
  ])
  if (!row) throw new Error('The settings of the database are gone')
  const missing = (row.missing ?? []).map((n) => witnesses[n - 1] as Witness)
  const stopped = row.stopped_at === null ? null : { at: Number(row.stopped_at), because: row.stopped_because ?? '' }
  return { floor: Number(row.floor), settled: Number(row.settled), stopped, missing }
}

export async function stop(ask: Ask, epoch: number, because: string): Promise<void> {
  await ask('stop', [epoch, because])
}
