/** The rules of compare-and-append. */
import { DATABASE, ENGINE, LUA, type Mutant } from './mutant.js'

/**
 * Processes usually hand each other's entries on, so that gaps hardly come up. This alone costs patience only: a refusal that rests on the
 * entry of somebody else waits until a sweeper brings it.
 */
export const OWN_ENTRIES_ONLY = [
  {
    file: LUA,
    find: 'local entries = entries_after(w, math.max(w.acked, w.known), pending_max + EXPIRE_MAX)',
    replace: 'local entries = entries_after(w, w.before, pending_max + EXPIRE_MAX)',
  },
]

const NO_INCARNATION = [{ file: LUA, find: 'if w.life ~= life then', replace: 'if false then' }]

const NO_RECALL = [{ file: LUA, find: 'local answer, entry = recall(w, c)', replace: 'local answer, entry' }]

export const PROTOCOL: readonly Mutant[] = [
  {
    rule: 'chain (and incarnation)',
    without: 'after a rollback an entry that rests on refused ones is accepted once the numbers have caught up',
    patches: [
      ...NO_INCARNATION,
      { file: DATABASE, find: 'row.head === first.prev &&', replace: '' },
      { file: DATABASE, find: 'row.available === first.available - first.availableDelta &&', replace: '' },
      { file: DATABASE, find: 'row.reserved === first.reserved - first.reservedDelta &&', replace: '' },
    ],
    finds: /does not rest on the one before/,
    within: 20,
    from: 105,
  },
  {
    rule: 'runs',
    without: 'a gap gets in between entries of one batch',
    patches: [
      ...OWN_ENTRIES_ONLY,
      {
        file: 'packages/holdfast/src/journal/runs.ts',
        find: 'next.seq === last.seq + 1 &&',
        replace: 'next.seq > last.seq &&',
      },
      { file: 'packages/holdfast/src/journal/runs.ts', find: 'next.prev === last.hash &&', replace: '' },
      {
        file: 'packages/holdfast/src/journal/runs.ts',
        find: 'next.available === last.available + next.availableDelta &&\n    next.reserved === last.reserved + next.reservedDelta',
        replace: 'true',
      },
    ],
    within: 600,
    from: 170,
  },
  {
    rule: 'a gap is not accepted',
    without: 'entries go missing in the middle',
    patches: [
      ...OWN_ENTRIES_ONLY,
      { file: DATABASE, find: 'row.seq === first.seq - 1 &&', replace: 'row.seq < first.seq &&' },
      { file: DATABASE, find: 'row.head === first.prev &&', replace: '' },
      { file: DATABASE, find: 'row.available === first.available - first.availableDelta &&', replace: '' },
      { file: DATABASE, find: 'row.reserved === first.reserved - first.reservedDelta &&', replace: '' },
    ],
    within: 50,
  },
  {
    rule: 'fenced install',
    without: 'entries of the old life are accepted beside the new one',
    patches: [
      {
        file: DATABASE,
        find: 'row.epoch = this.#nextEpoch(Math.max(row.epoch, epochMin - 1, this.epochFloor))',
        replace: 'row.epoch = Math.max(row.epoch, this.epochFloor + 1)',
      },
      { file: LUA, find: 'if old and old.epoch >= epoch then', replace: 'if false then' },
      { file: `${ENGINE}/lane.ts`, find: 'if (epochMin > this.epochMin) this.epochMin = epochMin', replace: '' },
    ],
    within: 100,
  },
  {
    rule: 'one install a raise',
    without: 'evicted in between and installed twice: one epoch, two lives',
    patches: [
      { file: LUA, find: "name: 'wallet_install',", replace: "name: 'wallet_install', again: true," },
      {
        file: 'sim/process.ts',
        find: "if (script.resend === 'safe' && tries < 2)",
        replace: "if ((script.resend === 'safe' || 'again' in script) && tries < 5)",
      },
      // As a client does that connects anew first.
      {
        file: 'sim/process.ts',
        find: 'this.inside(chance.next() * 40,',
        replace: 'this.inside(chance.next() * 1_000,',
      },
    ],
    within: 800,
    from: 40,
  },
  {
    rule: 'incarnation',
    without: 'a Redis that restarted from an old file is believed',
    patches: NO_INCARNATION,
    within: 50,
    from: 12,
  },
  {
    rule: 'incarnation: the replication id too',
    without: 'a server that was demoted, and promoted again with an older state, is believed: it has run all the while',
    patches: [
      {
        file: LUA,
        find: "string.find(info, 'master_replid:', 1, true)",
        replace: "string.find(info, 'run_id:', 1, true) - 7",
      },
    ],
    within: 500,
    from: 150,
  },
  {
    rule: "what is found is where it can't be lost",
    without:
      'told of what can be seen on a primary that came back without its standby; then that takes over, and it never was',
    patches: [
      { file: 'sim/postgres.ts', find: 'this.execute(this.#standby !== null, statement)', replace: 'statement.run()' },
    ],
    within: 500,
    from: 400,
  },
  {
    rule: 'take-over first',
    without: 'the Postgres path decides while Redis still may',
    patches: [
      {
        file: DATABASE,
        find: "const joined = row.owner === 'postgres' && this.#isCurrent(row.epoch)",
        replace: 'const joined = this.#isCurrent(row.epoch)',
      },
    ],
    within: 200,
  },
  {
    rule: 'acknowledge after append',
    without: 'acknowledged, then lost',
    patches: [
      {
        file: `${ENGINE}/decider.ts`,
        find: "if (attempt.byMemory) return attempt.accept(entry, false, 'memory')",
        replace: "return attempt.accept(entry, false, 'ledger')",
      },
    ],
    within: 50,
  },
  {
    rule: 'replayed results are acknowledged after append too',
    without: 'the first caller died before appending, the second hears yes, and it is lost',
    patches: [
      {
        file: `${ENGINE}/decider.ts`,
        find: "if (attempt.memory && answer.memory) return attempt.accept(entry, true, 'memory')",
        replace: "return attempt.accept(entry, true, 'ledger')",
      },
    ],
    within: 200,
    from: 30,
  },
  {
    rule: 'only what was made to be told from memory is',
    without: 'an entry is told from memory that nobody decides again when it is lost on its way',
    patches: [
      {
        file: `${ENGINE}/decider.ts`,
        find: "if (attempt.memory && answer.memory) return attempt.accept(entry, true, 'memory')",
        replace: "if (attempt.memory) return attempt.accept(entry, true, 'memory')",
      },
    ],
    within: 1_000,
    from: 1_050,
  },
  {
    rule: 'a "no" is an answer too',
    without: 'refused because of an entry that never gets committed',
    patches: [
      {
        file: `${ENGINE}/confirmer.ts`,
        find: 'if (confirmation.seen) return',
        replace:
          'return attempt.refuse(refusalError(refusal.code, refusal.facts, confirmation))\n    if (confirmation.seen) return',
      },
      {
        file: `${ENGINE}/decider.ts`,
        find: 'if (seq <= at.run.acked || isAcked(attempt.lane, answer.rest)) return this.#confirmer.add(attempt, answer)',
        replace: 'return this.#confirmer.add(attempt, answer)',
      },
    ],
    within: 50,
  },
  {
    rule: 'a conflict is a "no" too',
    without: 'a key is said to be used by an entry that never gets committed',
    patches: [
      {
        file: `${ENGINE}/decider.ts`,
        find: 'const { seq } = answer.rest',
        replace:
          "if (answer.type === 'conflict') return attempt.refuse(new HoldfastError('idempotency_conflict'))\n        const { seq } = answer.rest",
      },
    ],
    within: 200,
  },
  {
    rule: 'a "no" looks for the key',
    without: 'a retry of a committed operation is told "insufficient"',
    patches: [{ file: `${ENGINE}/confirmer.ts`, find: 'if (confirmation.seen) return', replace: 'if (false) return' }],
    within: 200,
  },
  {
    rule: 'a "no" on the Postgres path rests on the present',
    without: 'a process refuses because of a state that another one has left behind',
    patches: [
      {
        file: `${ENGINE}/share.ts`,
        find: "const proven = fresh || verdicts.at(-1)?.type === 'appended'",
        replace: 'const proven = true',
      },
    ],
    within: 200,
  },
  {
    rule: 'a "no" waits until no call without an answer can be decided any more',
    without: 'refused, and then a copy of the same call arrives late and is committed',
    patches: [{ file: `${ENGINE}/router.ts`, find: 'if (askedAt >= attempt.unansweredUntil)', replace: 'if (true)' }],
    within: 500,
    from: 190,
  },
  {
    rule: 'deadline',
    without: 'a paused attempt wakes up and is committed after its retry was refused',
    patches: [{ file: LUA, find: 'clock > c.deadline then', replace: 'false then' }],
    within: 600,
    from: 90,
  },
  {
    rule: 'a deadline is by the clock of one server alone',
    without:
      'a call that was held up is decided by who was promoted, whose clock is behind, after its retry was refused',
    patches: [{ file: LUA, find: 'if told_life ~= life or clock', replace: 'if clock' }],
    within: 1_000,
    from: 910,
  },
  {
    rule: 'pending entries are never overwritten',
    without: 'a gap that nobody can fill',
    patches: [
      { file: LUA, find: 'local RING = 16', replace: 'local RING = 2' },
      { file: LUA, find: 'if w.seq - w.acked >= w.ring - 1 then', replace: 'if false then' },
    ],
    within: 50,
    from: 24,
  },
  {
    rule: 'the acknowledged seq belongs to an epoch',
    without: 'what is pending counts as acknowledged, and is told, or overwritten',
    patches: [{ file: LUA, find: 'if t.epoch == w.epoch then', replace: 'if true then' }],
    within: 2_000,
    from: 1_820,
  },
  {
    rule: 'time only moves forward',
    without: 'an expired hold comes back to life',
    patches: [
      {
        file: LUA,
        find: 'return math.max(math.min(clock, caller_clock + ahead_max), w.clock)',
        replace: 'return math.min(clock, caller_clock + ahead_max)',
      },
    ],
    within: 50,
  },
  {
    rule: 'idempotency in the script',
    without: 'a call from memory that is repeated at another process is decided a second time, and told so',
    patches: NO_RECALL,
    within: 100,
    from: 308,
  },
  {
    rule: 'idempotency, in the script and in the journal',
    without: 'a resent call is decided and committed twice',
    patches: [
      ...NO_RECALL,
      { file: DATABASE, find: 'if (wallet.seqByKey.has(key) || keys.has(key)) return null', replace: '' },
    ],
    within: 100,
  },
  {
    rule: 'the journal knows every key for good',
    without: 'what Redis has forgotten happens again',
    patches: [{ file: DATABASE, find: 'if (wallet.seqByKey.has(key) || keys.has(key)) return null', replace: '' }],
    within: 100,
  },
  {
    rule: 'a refund knows its charge',
    without: 'a charge that is still on its way counts as nothing, and its refund is refused',
    patches: [{ file: LUA, find: 'if not c.facts then', replace: 'if false then' }],
    within: 400,
    from: 140,
  },
  {
    rule: 'what can not be stored is bad alone',
    without: 'who shares a run with it is told that there is something wrong with them',
    patches: [
      {
        file: 'packages/holdfast/src/journal/runs.ts',
        find: 'if (!run || run.entries.length === 1) return null',
        replace: 'if (runs.length === 1) return null\n  if (!run) return null',
      },
    ],
    within: 100,
    from: 55,
  },
]
