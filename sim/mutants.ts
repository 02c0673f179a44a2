/**
 * What the simulator must be able to find: for every rule of the protocol, and for the classic mistakes, a patch that leaves it
 * out. A rule whose absence shows in no schedule is either ornament or not tested.
 *
 * Lua is patched in the generated module (so without indentation), the simulated database where the rule lives in SQL.
 */
export interface Mutant {
  readonly rule: string
  /** What goes wrong without it. */
  readonly without: string
  readonly patches: readonly { readonly file: string; readonly find: string; readonly replace: string }[]
  /** Caught within so many schedules, from seed 1 on. */
  readonly within: number
}

const LUA = 'packages/holdfast/src/redis/scripts.generated.ts'
const ENGINE = 'packages/holdfast/src/engine'
const DATABASE = 'sim/database.ts'
/** Both twins are patched alike: what makes the difference must be seen by what the checker knows of sessions, not by comparing them. */
const DECIDE = 'packages/holdfast/src/machine/decide.ts'
const METER = 'packages/holdfast/src/machine/meter.ts'

/**
 * Processes usually hand each other's entries on, so that gaps hardly come up. This alone costs patience only: a refusal that rests on the
 * entry of somebody else waits until a sweeper brings it.
 */
const OWN_ENTRIES_ONLY = [
  {
    file: LUA,
    find: 'local entries = entries_after(w, math.max(w.acked, w.known), pending_max + EXPIRE_MAX)',
    replace: 'local entries = entries_after(w, w.before, pending_max + EXPIRE_MAX)',
  },
]

const NO_INCARNATION = [{ file: LUA, find: 'if w.life ~= life then', replace: 'if false then' }]

const AUDIT = 'packages/holdfast/src/audit'
/** A second look hides most of what a wrong comparison makes up. */
const LOOK_ONCE = [{ file: `${AUDIT}/hot-audit.ts`, find: 'const LOOKS = 3', replace: 'const LOOKS = 1' }]

const NO_RECALL = [{ file: LUA, find: 'local answer, entry = recall(w, c)', replace: 'local answer, entry' }]

/** Changes that cost time and nothing else: the protocol must hold without them. */
export const HARMLESS: readonly Pick<Mutant, 'rule' | 'patches'>[] = [
  {
    // That a hold is open is asked all the same: a second one of its name would take its place in the state until that is loaded anew.
    rule: 'the script remembers recent keys: the journal knows them all',
    patches: [{ file: LUA, find: 'local bytes = find_entry(w, c)', replace: 'local bytes' }],
  },
  {
    rule: 'the lease keeps others from loading at once',
    patches: [{ file: LUA, find: "lease = 'busy'", replace: "lease = 'leased'" }],
  },
  {
    rule: 'there is room for a few entries before the ring must grow',
    patches: [{ file: LUA, find: 'local RING = 16', replace: 'local RING = 1' }],
  },
  {
    rule: 'many refunds are noted before they are swept away',
    patches: [{ file: LUA, find: 'local REFUNDS_MAX = 64', replace: 'local REFUNDS_MAX = 1' }],
  },
  { rule: 'an audit looks again before it calls something wrong', patches: LOOK_ONCE },
]

export const MUTANTS: readonly Mutant[] = [
  {
    rule: 'chain (and incarnation)',
    without: 'after a rollback an entry that rests on refused ones is accepted once the numbers have caught up',
    patches: [
      ...NO_INCARNATION,
      { file: DATABASE, find: 'row.head === first.prev &&', replace: '' },
      { file: DATABASE, find: 'row.available === first.available - first.availableDelta &&', replace: '' },
      { file: DATABASE, find: 'row.reserved === first.reserved - first.reservedDelta &&', replace: '' },
    ],
    within: 100,
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
        find: 'row.epoch = Math.max(row.epoch + 1, epochMin, this.#epochFloor() + 1)',
        replace: 'row.epoch = Math.max(row.epoch, this.#epochFloor() + 1)',
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
  },
  {
    rule: 'incarnation',
    without: 'a Redis that restarted from an old file is believed',
    patches: NO_INCARNATION,
    within: 50,
  },
  {
    rule: 'take-over first',
    without: 'the Postgres path decides while Redis still may',
    patches: [
      {
        file: DATABASE,
        find: "if (row.owner !== 'postgres' || !this.#isCurrent(row.epoch)) {",
        replace: 'if (!this.#isCurrent(row.epoch)) {',
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
        find: "if (attempt.memory) return attempt.accept(entry, false, 'memory')",
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
        find: "if (attempt.memory) return attempt.accept(entry, true, 'memory')",
        replace: "return attempt.accept(entry, true, 'ledger')",
      },
    ],
    within: 200,
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
        file: `${ENGINE}/fallback.ts`,
        find: 'const proven = fresh || filed.length > 0',
        replace: 'const proven = true',
      },
    ],
    within: 200,
  },
  {
    rule: 'a "no" waits until no call without an answer can be decided any more',
    without: 'refused, and then a copy of the same call arrives late and is committed',
    patches: [{ file: `${ENGINE}/engine.ts`, find: 'if (askedAt >= attempt.unansweredUntil)', replace: 'if (true)' }],
    within: 800,
  },
  {
    rule: 'deadline',
    without: 'a paused attempt wakes up and is committed after its retry was refused',
    patches: [{ file: LUA, find: 'clock > c.deadline then', replace: 'false then' }],
    within: 600,
  },
  {
    rule: 'a deadline is by the clock of one server alone',
    without:
      'a call that was held up is decided by who was promoted, whose clock is behind, after its retry was refused',
    patches: [{ file: LUA, find: 'if told_life ~= life or clock', replace: 'if clock' }],
    within: 1_500,
  },
  {
    rule: 'pending entries are never overwritten',
    without: 'a gap that nobody can fill',
    patches: [
      { file: LUA, find: 'local RING = 16', replace: 'local RING = 2' },
      { file: LUA, find: 'if w.seq - w.acked >= w.ring then', replace: 'if false then' },
    ],
    within: 50,
  },
  {
    rule: 'the acknowledged seq carries its epoch',
    without: 'entries of a new life are taken for acknowledged',
    patches: [
      { file: LUA, find: 'if t.epoch == w.epoch then', replace: 'if true then' },
      {
        file: LUA,
        find: 'w.acked = math.min(w.seq, math.max(w.acked, t.acked))',
        replace: 'w.acked = math.max(w.acked, t.acked)',
      },
    ],
    within: 1_200,
  },
  {
    rule: 'time only moves forward',
    without: 'an expired hold comes back to life',
    patches: [
      {
        file: LUA,
        find: 'local now = math.max(math.min(clock, caller_clock + ahead_max), w.clock)',
        replace: 'local now = math.min(clock, caller_clock + ahead_max)',
      },
    ],
    within: 50,
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
    rule: 'expiry returns the money',
    without: 'a TTL on a key: the hold is gone, its money stays reserved',
    patches: [
      {
        file: LUA,
        find: "file(w, now, c, give_back('expire', hold))",
        replace: "remove(w, 'h:' .. hold.id); w.open = w.open - 1",
      },
    ],
    within: 50,
  },
  {
    rule: 'a settle meets the expiry first',
    without: 'settled and expired: the money comes back twice',
    patches: [{ file: LUA, find: 'if not expire_due(w, now) then', replace: 'if false then' }],
    within: 50,
  },
  {
    rule: 'the bound of the next expiry moves only with the state it belongs to',
    without: 'a hold never expires',
    patches: [
      {
        file: DATABASE,
        find: 'if (row?.epoch === epoch && row.seq === seq) row.due = due',
        replace: 'if (row) row.due = due',
      },
    ],
    within: 300,
  },
  {
    rule: 'an extension is counted once',
    without: 'what a tick sets aside is in the hold twice, and comes back twice',
    patches: [
      { file: LUA, find: 'hold.left = hold.left + more - due', replace: 'hold.left = hold.left + 2 * more - due' },
      { file: DECIDE, find: 'left: hold.left + more - charge,', replace: 'left: hold.left + 2 * more - charge,' },
    ],
    within: 50,
  },
  {
    rule: 'ticks that cross the line together extend once',
    without: 'each of them sets another stretch aside',
    patches: [
      {
        file: LUA,
        find: 'local more = math.min(wanted(meter, hold.amount, used) - hold.amount, spare)',
        replace:
          'local more = math.min(wanted(meter, meter.stretch, used) > meter.stretch and meter.stretch or 0, spare)',
      },
      {
        file: METER,
        find: 'const more = Math.min(wanted(meter, hold.amount, used) - hold.amount, spendable)',
        replace:
          'const more = Math.min(wanted(meter, meter.stretch, used) > meter.stretch ? meter.stretch : 0, spendable)',
      },
    ],
    within: 50,
  },
  {
    rule: 'a tick charges what was not charged before',
    without: 'a repeated tick bills again',
    patches: [
      {
        file: LUA,
        find: 'local due = math.min(used - hold.captured, hold.left + more)',
        replace: 'local due = math.min(used, hold.left + more)',
      },
      {
        file: METER,
        find: 'return { more, charge: Math.min(used - hold.captured, hold.left + more) }',
        replace: 'return { more, charge: Math.min(used, hold.left + more) }',
      },
    ],
    within: 50,
  },
  {
    rule: 'what was acknowledged from memory is decided again in the new life',
    without: 'a raise discards it, though Redis forgot nothing',
    patches: [{ file: LUA, find: 'pending[#pending + 1] = command_of(entry, mark_at(old, entry.seq))', replace: '' }],
    within: 300,
  },
  {
    rule: 'what is decided again is decided at its own time',
    without:
      'a capture was acknowledged from memory, its hold runs out before it is loaded anew, and the capture is lost',
    patches: [
      { file: LUA, find: 'decide(w, c, math.max(c.at, w.at))', replace: 'decide(w, c, math.max(c.at, w.clock))' },
    ],
    within: 600,
  },
  {
    rule: 'wallets used from memory have no Postgres path',
    without: 'the Postgres path decides without knowing what Redis acknowledged',
    patches: [{ file: DATABASE, find: "if (row.memory) return 'memory'", replace: '' }],
    within: 600,
  },
  {
    rule: 'timeline',
    without: 'a replica that lagged has missed a raise: two lives under one epoch, each refusing without the other',
    patches: [
      {
        file: DATABASE,
        find: 'Math.max(this.timeline * EPOCHS_A_TIMELINE, this.#standing.settled)',
        replace: 'Math.max(EPOCHS_A_TIMELINE, this.#standing.settled)',
      },
    ],
    within: 800,
  },
  {
    rule: 'a lost answer is no yes',
    without: 'a commit hung, its session was cut, the standby did not have it: acknowledged, and lost',
    patches: [
      {
        file: `${ENGINE}/appender.ts`,
        find: 'way.queue.unshift(...items)',
        replace: 'this.#waiting -= items.length; for (const item of items) this.#conclude(item, { type: "appended" })',
      },
    ],
    within: 50,
  },
  {
    rule: 'a refund knows its charge',
    without: 'a charge that is still on its way counts as nothing, and its refund is refused',
    patches: [{ file: LUA, find: 'if not c.facts then', replace: 'if false then' }],
    within: 400,
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
  },
  {
    rule: 'a transfer is written down first',
    without: 'its process dies, and the hold stays for ever',
    patches: [
      {
        file: `${ENGINE}/transfers.ts`,
        find: 'const { attempt } = await this.#begin(intent, patience)',
        replace: 'const attempt = 0',
      },
    ],
    within: 50,
  },
  {
    rule: 'a transfer has one key on its target',
    without: 'who finishes it lets it arrive again',
    patches: [
      {
        file: `${ENGINE}/transfer-commands.ts`,
        find: "const ACCOUNT = 'transfers'",
        replace: "const ACCOUNT = 'transfers'\nlet credits = 0",
      },
      {
        file: `${ENGINE}/transfer-commands.ts`,
        find: "kind: 'credit', key: targetKey(source, key)",
        replace: "kind: 'credit', key: targetKey(source, key) + ++credits",
      },
    ],
    within: 50,
  },
  {
    rule: "the target's key is used up before the source is released",
    without: 'one who is at work on the same transfer lets it arrive after all',
    patches: [
      {
        file: `${ENGINE}/transfers.ts`,
        find: 'return this.#void(intent, error, patience)',
        replace: "return ofSide(error, 'to')",
      },
    ],
    within: 1_000,
  },
  {
    rule: "a transfer's hold does not run out",
    without: 'what has arrived goes back as well',
    patches: [
      {
        file: `${ENGINE}/transfer-commands.ts`,
        find: 'const HOLD_TTL_MS = 100 * 365 * 24 * 60 * 60 * 1_000',
        replace: 'const HOLD_TTL_MS = 1_000',
      },
    ],
    within: 100,
  },
  {
    rule: 'an audit knows what came between its two looks',
    without:
      'what was appended after the journal was read, and before Redis was, passes for something that Postgres has lost',
    patches: [
      {
        file: `${AUDIT}/hot.ts`,
        find: "if (core.acked > state.seq && between === null) return { type: 'wanting', after: state.seq, upTo: core.acked }",
        replace: '',
      },
      ...LOOK_ONCE,
    ],
    within: 30,
  },
  {
    rule: 'an audit takes a state that was loaded meanwhile for what it is',
    without: 'an epoch that was raised between its two looks passes for one that Postgres has lost',
    patches: [{ file: `${AUDIT}/hot-audit.ts`, find: 'if (expected >= found) continue', replace: '' }, ...LOOK_ONCE],
    within: 60,
  },
  {
    rule: 'what was acknowledged is asked after',
    without: 'Postgres is put back to an earlier point, and everything goes on as if nothing had been',
    patches: [
      {
        file: DATABASE,
        find: 'if (epoch <= this.#standing.settled) return false',
        replace: 'if (epoch > 0) return false',
      },
    ],
    within: 60,
  },
  {
    rule: 'what was handed out is past',
    without: 'the operator has acted, and it is found again for ever',
    patches: [
      {
        file: DATABASE,
        find: 'this.#standing = { settled, stopped: null }',
        replace: 'this.#standing = { settled: 0, stopped: null }',
      },
    ],
    within: 60,
  },
]
