import type { Postgres } from '../postgres/index.js'
import { bytesArray, textArray } from './array-text.js'
import type { Confirmation, Owner, Refusal } from './types.js'
import { waitOnce } from './wait-once.js'

interface ConfirmationRow {
  current: boolean
  held: boolean
  seen: boolean
  hold_made: boolean
  hold_expired: boolean
  epoch: string | null
  owner: Owner | null
  locked: boolean
}

/** Whether what refusals rest on stands. See sql/0002_journal.sql for what is waited for, and why. */
export async function confirm(postgres: Postgres, refusals: readonly Refusal[]): Promise<(Confirmation | 'locked')[]> {
  const values = [
    textArray(refusals.map(({ ref }) => ref)),
    `{${refusals.map(({ epoch }) => epoch)}}`,
    `{${refusals.map(({ seq }) => seq)}}`,
    bytesArray(refusals.map(({ head }) => head)),
    textArray(refusals.map(({ key }) => key)),
    textArray(refusals.map(({ hold }) => hold)),
  ]
  const rows = await waitOnce((skipLocked) => postgres.query<ConfirmationRow>('confirm', [...values, skipLocked]))
  return rows.map(readConfirmation)
}

function readConfirmation(row: ConfirmationRow): Confirmation | 'locked' {
  // What is in the journal stays there, whoever has the row.
  if (row.locked && !row.seen) return 'locked'
  return {
    stands: row.current && row.held && !row.locked,
    epoch: Number(row.epoch ?? 0),
    owner: row.owner,
    seen: row.seen,
    hold: row.hold_expired ? 'expired' : row.hold_made ? 'closed' : 'unknown',
  }
}
