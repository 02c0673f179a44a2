/** What callers saw, in the words of the simulator: so that real servers are judged by the same checker. */
import { type ErrorCode, HoldfastError } from 'holdfast'
import { meterOf } from '../packages/holdfast/src/api/terms.js'
import type { TransferOutcome } from '../packages/holdfast/src/engine/index.js'
import { type Command, command, type Entry } from '../packages/holdfast/src/machine/index.js'
import type { Heard, Operation } from '../sim/caller.js'
import type { AskedTransfer, TransferHeard } from '../sim/transfers.js'
import type { Answer, Asked, Seen, ToldEntry } from './history.js'

/** Everything that was asked under one key, by whomever, in the order in which it was asked. */
export function byKey(history: readonly Seen[]): Seen[][] {
  const groups = new Map<string, Seen[]>()
  for (const seen of history) {
    const name = `${seen.asked.wallet} ${seen.asked.key}`
    const group = groups.get(name)
    if (group) group.push(seen)
    else groups.set(name, [seen])
  }
  for (const group of groups.values()) group.sort((a, b) => a.startedAt - b.startedAt)
  return [...groups.values()]
}

/** The answer that stands: a yes where there is one, else what was heard last. Its call is what a refusal is measured by. */
function lastWord(group: readonly Seen[]): Seen {
  return group.find(({ answer }) => answer?.type === 'yes') ?? (group.at(-1) as Seen)
}

export function operationOf(group: readonly Seen[], refOf: ReadonlyMap<string, string>): Operation | null {
  const { asked, startedAt, endedAt, answer } = lastWord(group)
  const wanted = commandOf(asked)
  if (!wanted) return null
  const ref = refOf.get(asked.wallet) as string
  return { ref, command: wanted, memory: false, startedAt, endedAt, heard: heardOf(answer), tries: group.length }
}

/** Null for what has no key that its caller knows (ticks), and for what is no operation of one wallet. */
function commandOf(asked: Asked): Command | null {
  switch (asked.kind) {
    case 'tick':
    case 'end':
    case 'transfer':
    case 'read':
      return null
    case 'meter': {
      const { kind, key, rate, reserve, heartbeatMs: heartbeat } = asked
      return command({ kind, key, meter: meterOf({ by: 'units', rate, reserve, heartbeat }) })
    }
    default:
      return command(asked)
  }
}

function heardOf(answer: Answer | null): Heard {
  if (answer?.type === 'yes') return { type: 'yes', outcome: outcomeOf(answer.entries[0], answer.replayed) }
  if (answer?.type === 'no') return { type: 'no', error: errorOf(answer) }
  return { type: 'unknown' }
}

// What callers are told of an entry is less than the machine knows; the checker looks at no more.
const outcomeOf = (entry: ToldEntry | undefined, replayed: boolean) => ({
  entry: entry as unknown as Entry,
  replayed,
  durability: 'ledger' as const,
})

const errorOf = ({ code, facts }: Extract<Answer, { type: 'no' }>) =>
  new HoldfastError(code as ErrorCode, undefined, facts)

export function transferOf(group: readonly Seen[], refOf: ReadonlyMap<string, string>): AskedTransfer | null {
  const { asked, startedAt, endedAt, answer } = lastWord(group)
  if (asked.kind !== 'transfer') return null
  const { key, amount, fee } = asked
  const [source, target] = [refOf.get(asked.wallet) as string, refOf.get(asked.to) as string]
  return {
    intent: { tenant: 'default', source, target, key, amount, fee, counter: 'revenue', metadata: '' },
    startedAt,
    endedAt,
    heard: transferHeardOf(answer),
    tries: group.length,
  }
}

function transferHeardOf(answer: Answer | null): TransferHeard {
  if (answer?.type === 'no') return { type: 'no', error: errorOf(answer) }
  if (answer?.type !== 'yes') return { type: 'unknown' }
  const { entries, replayed } = answer
  const outcome = { from: outcomeOf(entries[0], replayed), to: outcomeOf(entries[1], replayed), replayed }
  return { type: 'yes', outcome: outcome as TransferOutcome }
}
