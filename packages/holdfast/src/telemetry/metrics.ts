/**
 * The one table of metrics. The server makes its Prometheus registry from it and `docs/reference/metrics.md` lists it.
 * Labels are bounded sets (a script's name, an outcome), never ids, keys or tenants' own words.
 */
export const METRICS = {
  redis_command_duration_seconds: {
    type: 'histogram',
    labels: ['command', 'outcome'],
    help: 'Time of one Redis call, by script or command',
  },
  redis_commands_in_flight: { type: 'gauge', labels: [], help: 'Redis calls sent and not yet answered' },
  redis_command_queue_length: { type: 'gauge', labels: [], help: 'Redis calls waiting for a connection' },
  redis_connections: { type: 'gauge', labels: ['state'], help: 'Redis connections by state' },
  redis_reconnects_total: { type: 'counter', labels: [], help: 'Times a Redis connection was made anew' },
  redis_retries_total: {
    type: 'counter',
    labels: ['reason'],
    help: 'Redis calls sent again: the reply was lost, or Redis said that nothing ran (moved, loading, readonly, …)',
  },
  redis_script_loads_total: {
    type: 'counter',
    labels: ['command'],
    help: 'Scripts sent with their source, because the server did not know them',
  },
  postgres_query_duration_seconds: {
    type: 'histogram',
    labels: ['query', 'outcome'],
    help: 'Time of one Postgres statement',
  },
  postgres_pool_connections: { type: 'gauge', labels: ['state'], help: 'Postgres connections: total, idle' },
  postgres_pool_waiting: { type: 'gauge', labels: [], help: 'Callers waiting for a Postgres connection' },
  holdfast_queue_wait_seconds: {
    type: 'histogram',
    labels: ['stage'],
    help: 'How long the first of a batch waited in this process before the batch was sent: decide (to Redis), append (to Postgres)',
  },
  holdfast_batch_size: {
    type: 'histogram',
    labels: ['stage'],
    help: 'How many went in one call: commands (decide), entries (append)',
  },
  holdfast_decisions_total: {
    type: 'counter',
    labels: ['answer'],
    help: 'Commands answered by Redis, by kind of answer',
  },
  holdfast_entries_total: { type: 'counter', labels: ['verdict'], help: 'Entries sent to the journal, by verdict' },
  holdfast_recoveries_total: {
    type: 'counter',
    labels: ['what'],
    help: 'What had to be set right: stale, gap, untrusted, replay, seen, take_over, fallback, help, reload, stop (Postgres lacks what was acknowledged); transfers that others had begun: transfer_finished, transfer_undone, transfer_dropped, and transfer_voided for those that may not arrive any more; purchases out of a wallet that others had begun: purchase_settled, purchase_released, purchase_dropped, and purchase_voided for those that can not be bought with that money any more; stock between the buckets of a sale that others had set in motion: move_finished, move_dropped, and move_hastened where somebody waited for it',
  },
  holdfast_backlog_entries: {
    type: 'gauge',
    labels: [],
    help: 'Entries decided in Redis that wait for Postgres in this process',
  },
  holdfast_stopped: {
    type: 'gauge',
    labels: [],
    help: '1 while nothing is decided because Postgres lacks entries that were acknowledged: run holdfast reconcile',
  },
  holdfast_circuit_open: {
    type: 'gauge',
    labels: ['dependency'],
    help: 'Circuits that are open: redis has one (on a Cluster one a shard), and while it is open operations go through Postgres; postgres has one, and while it is open operations are refused',
  },
  holdfast_circuit_changes_total: {
    type: 'counter',
    labels: ['dependency', 'to'],
    help: 'Times that a circuit became open or closed',
  },
  holdfast_operations_under_way: {
    type: 'gauge',
    labels: ['which'],
    help: 'Operations that were asked for and have no answer yet: all, and waiting for the Postgres path',
  },
  holdfast_sweeps_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Rounds of the sweeper over all shards and over what Postgres knows to be due: done, failed (somewhere; the next round tries again)',
  },
  holdfast_sweep_duration_seconds: { type: 'histogram', labels: [], help: 'Time of one round of the sweeper' },
  holdfast_swept_wallets_total: {
    type: 'counter',
    labels: ['where'],
    help: 'Wallets that the sweeper looked after: hot (on the agenda in Redis), cold (Postgres said that a hold may have run out)',
  },
  holdfast_sale_results_total: {
    type: 'counter',
    labels: ['operation', 'result'],
    help: 'What was asked of sales (open, checkout, purchase, cancel, close), by what became of it: done, replayed (the first answer again), or the code of the refusal: sold_out, user_limit, sale_not_active, …',
  },
  holdfast_sale_units_total: {
    type: 'counter',
    labels: ['operation'],
    help: 'Units of stock that went into checkouts (checkout) and were bought (purchase), repeated calls aside',
  },
  holdfast_sale_duration_seconds: {
    type: 'histogram',
    labels: ['operation'],
    help: 'Time from a call of a sale to its answer, whatever that was',
  },
  holdfast_memory_lost_total: {
    type: 'counter',
    labels: [],
    help: 'Operations acknowledged from memory that Redis lost and that no longer fit',
  },
  holdfast_sale_slots_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Slots of schedules of sales, by this process: opened, finished (somebody else had begun it), failed (it is tried again)',
  },
  holdfast_sale_early_rejects_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Checkouts of what is sold for good: told (refused without asking anybody), false_hit (the Bloom filter took an item for sold that is not)',
  },
  holdfast_audits_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Audits of a shard by this process: done, failed',
  },
  holdfast_audit_duration_seconds: {
    type: 'histogram',
    labels: [],
    help: 'Time of one audit of a shard, its rests included',
  },
  holdfast_audit_wallets_total: {
    type: 'counter',
    labels: ['where'],
    help: 'Wallets that were audited: journal (row and journal), hot (what Redis has of it)',
  },
  holdfast_audit_findings_total: {
    type: 'counter',
    labels: ['cause', 'action'],
    help: 'What audits found, by cause and by what was done: repaired, reported, failed. What stays is found anew by each audit',
  },
  holdfast_audit_waited_seconds: {
    type: 'gauge',
    labels: [],
    help: 'For how long the shard has not been audited, by whichever process, that has waited longest',
  },
  holdfast_locks_total: {
    type: 'counter',
    labels: ['outcome'],
    help: 'Locks of wallets: taken, busy after all retries, lost while work was done under them',
  },
  redis_lock_attempts_total: {
    type: 'counter',
    labels: ['of'],
    help: 'Locks that were asked for, each with all its retries: of a wallet, of a lease, of a lease over several servers (quorum)',
  },
  redis_lock_success_total: { type: 'counter', labels: ['of'], help: 'Locks that were had' },
  redis_lock_failure_total: {
    type: 'counter',
    labels: ['of', 'reason'],
    help: 'Locks that were not had: busy (somebody else has it), unavailable (Redis or Postgres was away or silent), aborted, timeout (the caller stopped waiting), value_damaged or internal_error (something else stands in its place)',
  },
  holdfast_primitive_results_total: {
    type: 'counter',
    labels: ['primitive', 'result'],
    help: 'Calls of primitives by what became of them: claimed, exists, added, refused, …; damaged (something else stood under the key), unavailable (Redis was away or silent)',
  },
  holdfast_primitive_keys: {
    type: 'gauge',
    labels: ['primitive'],
    help: 'Keys of a primitive in Redis, as the last walk of the sampler has counted them',
  },
  holdfast_primitive_ttl_missing: {
    type: 'gauge',
    labels: ['primitive'],
    help: 'Keys of a primitive that should have an end and have none, by the last walk of the sampler: somebody else has made or changed them',
  },
  holdfast_bitmap_highest_offset: {
    type: 'gauge',
    labels: ['primitive'],
    help: 'Highest position that this process has marked in a bitmap: an eighth of it is the bytes of that bitmap',
  },
  holdfast_sale_attempts_lost_total: {
    type: 'counter',
    labels: ['why'],
    help: 'Attempts in sales that are not on record: full (too many waited for Postgres), closed (the process ended before they were written), refused (Postgres can not store them). What they did is in the journal',
  },
} as const satisfies Record<
  string,
  { type: 'counter' | 'gauge' | 'histogram'; labels: readonly string[]; help: string }
>

export type MetricName = keyof typeof METRICS
