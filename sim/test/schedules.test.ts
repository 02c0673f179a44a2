import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Build, type Report } from './runs.js'

const SCHEDULES = 2_000
const JOBS = 2

/** What must have gone wrong, and what the engine must have been made to set right, or the schedules were too kind. */
const MUST_HAPPEN = [
  'fault_clock_far_ahead',
  'fault_postgres_away',
  'fault_postgres_clock',
  'fault_postgres_comes_back_alone',
  'fault_postgres_cut',
  'fault_postgres_entry_lost',
  'fault_postgres_fails_over',
  'fault_postgres_fails_over_lagging',
  'fault_postgres_hanging_commit',
  'fault_postgres_long_away',
  'fault_postgres_restored',
  'fault_process_dies',
  'fault_process_pauses',
  'fault_process_sleeps',
  'fault_redis_away',
  'fault_redis_clock',
  'fault_redis_cut',
  'fault_redis_evicts',
  'fault_redis_fails_over',
  'fault_redis_flushed',
  'fault_redis_full',
  'fault_redis_restarts',
  'fault_redis_restarts_from_long_ago',
  'fault_zone_lost',
  'answer_lost',
  'message_held_up',
  'message_late',
  'message_lost',
  'message_resent',
  'statement_answer_lost',
  'statement_late',
  'statement_lost',
  'postgres_undone',
  'bad',
  'epoch',
  'stale',
  'gap',
  'there',
  'untrusted_missing',
  'untrusted_incarnation',
  'untrusted_epoch',
  'untrusted_stock',
  'replay',
  'seen',
  'take_over',
  'fallback',
  'help',
  'reload',
  'unfounded',
  'late',
  'unmarked',
  'facts',
  'opened_late',
  'done_cancel',
  'done_checkout',
  'done_close',
  'done_freeze',
  'done_limit',
  'done_purchase',
  'done_unfreeze',
  'told_duplicate_item',
  'told_idempotency_conflict',
  'told_invalid_argument',
  'told_sold_out',
  'told_user_limit',
  'told_wallet_closed',
  'told_wallet_frozen',
  'told_wallet_not_empty',
  'told_wallet_not_found',
  'session_extended',
  'session_charged',
  'session_told_again',
  'session_short',
  'session_expired',
  'session_ended',
  'session_end_again',
  'session_tick_late',
  'transfer_yes',
  'transfer_finished',
  'transfer_undone',
  'transfer_dropped',
  'transfer_voided',
  'payment_yes',
  'payment_again',
  'purchase_settled',
  'purchase_released',
  'purchase_dropped',
  'purchase_voided',
  'audits',
  'audited_hot',
  'stop',
  'operator_reconciled',
  'operator_exported',
]

let build: Build
beforeAll(async () => {
  build = await Build.of({ rule: 'none', patches: [] })
})
afterAll(() => build.remove())

describe('the engine in the simulator', () => {
  it(`keeps its word in ${SCHEDULES} schedules`, { timeout: 1_200_000 }, async () => {
    const { code, output, report } = await build.run('--seeds', `${SCHEDULES}`, '--jobs', `${JOBS}`)
    expect(report.failures, output).toEqual([])
    expect(code).toBe(0)
    const { counts } = report
    // Faults never stop while callers call, and while Postgres can't be written to they are turned away at once; but who tries six times should
    // mostly have got through.
    const heard = (name: string) => counts[`heard_${name}`] ?? 0
    expect(heard('unknown') / (heard('yes') + heard('no') + heard('unknown'))).toBeLessThan(0.12)
    for (const name of MUST_HAPPEN) expect(counts[name] ?? 0, name).toBeGreaterThan(0)
  })

  it('replays a seed exactly', { timeout: 60_000 }, async () => {
    const [first, second] = await Promise.all([
      build.run('--seeds', '1', '--from', '77'),
      build.run('--seeds', '1', '--from', '77'),
    ])
    const history = ({ output }: { output: string }) => output.split('\n').filter((line) => line.includes(' ms  '))
    expect(history(first).length).toBeGreaterThan(1_000)
    expect(history(first)).toEqual(history(second))
  })

  it('gives the same history to a seed whatever ran before it, on whichever thread', { timeout: 60_000 }, async () => {
    const alone = await build.run('--seeds', '1', '--from', '44')
    const among = await build.run('--seeds', '9', '--from', '36', '--jobs', '1')
    const without = await build.run('--seeds', '8', '--from', '36', '--jobs', '2')
    const names = [alone, among, without].flatMap(({ report }) => Object.keys(report.counts))
    const of = (report: Report, name: string) => report.counts[name] ?? 0
    for (const name of names) {
      expect(of(among.report, name) - of(without.report, name), name).toBe(of(alone.report, name))
    }
  })
})
