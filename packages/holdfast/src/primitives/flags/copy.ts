import { randomUUID } from 'node:crypto'
import { flagsRead, flagsWrite } from '../../redis/scripts.generated.js'
import { Calls, damaged } from '../calls.js'
import { type Context, ofDatabase, tell } from '../context.js'
import { KeySpace, type Scope } from '../keys.js'
import { checkDefinition, checkName } from './check.js'
import type { FlagFacts } from './definition.js'
import type { FlagSet } from './store.js'

/** What Redis told of its copy. */
export interface CopyLook {
  /** Of its flags. Null: there is no copy. */
  readonly id: string | null
  /** Since Postgres was last asked whether it is so. */
  readonly ageMs: number
  /** Null: those that the asker has. */
  readonly flags: readonly FlagFacts[] | null
  /** Nobody has asked Postgres for too long, and this one is to. */
  readonly isTurn: boolean
}

/**
 * Flags are looked after from outside of an application (HTTP, the command line), so that they belong to no owner but to a tenant of a
 * database. The copy is found with the secret of that: another database has another copy, also where both have one Redis.
 */
const OWNER = 'holdfast'
const OPERATION = 'all'
const DIGITS = 16
const MARK_DIGITS = 6
/** So that a process that starts while Postgres is away finds what was so last. */
const KEEP_MS = 24 * 60 * 60 * 1_000

/** The flags of a tenant in Redis: a copy, by which most processes learn of changes without asking Postgres. */
export class FlagCopy {
  readonly scope: Scope
  readonly #context: Context
  readonly #keys: readonly [copy: string, turn: string]
  readonly #read: Calls
  readonly #write: Calls
  /** Of this process: a claim that it made twice, because an answer was lost, is one claim. */
  readonly #token = randomUUID()

  constructor(context: Context) {
    this.#context = context
    this.scope = new KeySpace({ ...ofDatabase(context, 'what flags are'), owner: OWNER }, 'flags', OPERATION).whole
    this.#keys = [this.scope.key('copy'), this.scope.key('turn')]
    this.#read = new Calls(context, 'flags', flagsRead)
    this.#write = new Calls(context, 'flags', flagsWrite)
  }

  async look(known: string | null, askAfterMs: number, askMs: number): Promise<CopyLook> {
    const args = [known ?? '', this.#token, askAfterMs, askMs]
    const answer = (await this.#read.add(this.scope, this.#keys, args)) as [Buffer, Buffer, Buffer, number]
    const [id, age, flags, turn] = answer
    return {
      id: id.length === 0 ? null : id.toString('latin1'),
      ageMs: Number(age.toString('latin1')),
      flags: flags.length === 0 ? null : this.#parse(flags),
      isTurn: turn === 1,
    }
  }

  /** By one who was told to ask, `ago` ms after it did. `hasIt`: the copy had these flags when it was looked at. */
  async confirm(set: FlagSet, agoMs: number, hasIt: boolean): Promise<void> {
    await this.#put(idOf(set), hasIt ? '' : textOf(set.flags), agoMs, this.#token)
  }

  /** By one who has changed a flag, and read them all since. */
  async announce(set: FlagSet, agoMs: number): Promise<void> {
    await this.#put(idOf(set), textOf(set.flags), agoMs, '')
  }

  async #put(id: string, flags: string, agoMs: number, token: string): Promise<void> {
    const args = [id, flags, Math.ceil(agoMs), KEEP_MS, token]
    await this.#write.add(this.scope, this.#keys, args)
  }

  #parse(bytes: Buffer): FlagFacts[] {
    try {
      return (JSON.parse(bytes.toString('utf8')) as unknown[]).map(readFacts)
    } catch {
      tell(this.#context, 'flags', 'damaged')
      throw damaged(this.scope)
    }
  }
}

/** What flags are known by: the number of their last change, and its mark. */
export const idOf = ({ revision, mark }: Pick<FlagSet, 'revision' | 'mark'>): string =>
  `${revision}`.padStart(DIGITS, '0') + mark.toString(16).padStart(MARK_DIGITS, '0')

export const revisionOf = (id: string): number => Number(id.slice(0, DIGITS))

const textOf = (flags: readonly FlagFacts[]): string =>
  JSON.stringify(
    flags.map(({ name, version, killed, on, percentage, rules }) => ({ name, version, killed, on, percentage, rules })),
  )

/** What stands in Redis may be anybody's: it is held against the same checks as what comes from a caller. */
function readFacts(value: unknown): FlagFacts {
  const { name, version, killed, ...rest } = value as FlagFacts
  if (!Number.isSafeInteger(version) || typeof killed !== 'boolean') throw new TypeError('no flag')
  const { on, percentage, rules } = checkDefinition(rest)
  return { name: checkName(name), version, killed, on, percentage, rules }
}
