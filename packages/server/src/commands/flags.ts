import { HoldfastError, Postgres } from 'holdfast'
import {
  FeatureFlags,
  type Flag,
  type FlagAnswer,
  type FlagAttributes,
  type FlagAuthor,
  type FlagChange,
  type FlagDefinition,
  type FlagRule,
  Primitives,
} from 'holdfast/primitives'
import type { Config, ReadConfig } from '../config/index.js'
import { StartError } from '../lifecycle/start-error.js'
import { EXIT, type Run } from './command.js'
import { tableOf } from './table.js'

const HISTORY = 1_000

export const listFlags: Run = async (given, { print }) => {
  const flags = await withFlags(given, (one) => one.list())
  if (given.config.json) print(JSON.stringify(flags))
  else print(flags.length === 0 ? 'There are no flags. Make one with: holdfast flags set' : flagTable(flags))
  return EXIT.ok
}

export const getFlag: Run = async (given, { print }) => {
  const { config } = given
  const flag = await withFlags(given, (flags) => flags.get(nameOf(config)))
  if (flag === null) throw new StartError(noFlag(config))
  if (config.json) print(JSON.stringify(flag))
  else print([flagTable([flag]), flag.description, ...flag.rules.map(ruleText)].filter(Boolean).join('\n'))
  return EXIT.ok
}

/** What is given changes; what is not stays, or is what a new flag has. */
export const setFlag: Run = async (given, terminal) => {
  const { config } = given
  const { flagState: state, percentage, rules, flagDescription: description } = config
  const different: Partial<FlagDefinition> = {
    ...(state !== undefined && { on: state === 'on' }),
    ...(percentage !== undefined && { percentage }),
    ...(rules !== undefined && { rules: JSON.parse(rules) as FlagRule[] }),
    ...(description !== undefined && { description }),
  }
  return change(given, terminal, async (flags, author) => {
    // Without anything to be different it is a new one, or it is as it is.
    const changed = await flags.change(nameOf(config), different, author)
    if (changed.result !== 'missing') return changed
    return flags.put(nameOf(config), { on: false, ...different }, { ...author, version: author.version ?? 0 })
  })
}

/** Changes one thing about a flag that there is. */
export const changeFlag =
  (what: (config: Config) => Partial<FlagDefinition>): Run =>
  (given, terminal) =>
    change(given, terminal, (flags, author) => flags.change(nameOf(given.config), what(given.config), author))

export const turnOn = changeFlag(() => ({ on: true }))
export const turnOff = changeFlag(() => ({ on: false }))
export const setPercentage = changeFlag(({ newPercentage }) => ({ percentage: newPercentage as number }))
export const setRules = changeFlag(({ newRules }) => ({ rules: JSON.parse(newRules as string) as FlagRule[] }))

export const killFlag: Run = (given, terminal) =>
  change(given, terminal, (flags, author) => flags.kill(nameOf(given.config), author))

export const unkillFlag: Run = (given, terminal) =>
  change(given, terminal, (flags, author) => flags.unkill(nameOf(given.config), author))

export const deleteFlag: Run = (given, terminal) =>
  change(given, terminal, (flags, author) => flags.delete(nameOf(given.config), author))

export const flagHistory: Run = async (given, { print }) => {
  const { historyOf: name, json } = given.config
  const events = await withFlags(given, (flags) => flags.history({ ...(name && { name }), limit: HISTORY }))
  if (json) print(JSON.stringify(events))
  else if (events.length === 0) print('Nothing was ever changed.')
  else {
    const rows = events.map(({ revision, at, name, kind, by, why, after }) => {
      return [`${revision}`, momentOf(at), name, kind, after ? stateOf(after) : '', by, why ?? '']
    })
    print(tableOf(['number', 'time (utc)', 'flag', 'change', 'then', 'by', 'why'], rows))
  }
  return EXIT.ok
}

export const checkFlag: Run = async (given, { print }) => {
  const { config } = given
  const attributes = JSON.parse(config.attributes ?? '{}') as FlagAttributes
  const answer = await withFlags(given, (flags) => flags.check(nameOf(config), config.subject, attributes))
  if (answer.because === 'unknown') throw new StartError(noFlag(config))
  print(config.json ? JSON.stringify(answer) : `${answer.on ? 'on' : 'off'}: ${reasonOf(answer)}`)
  return EXIT.ok
}

async function change(
  given: ReadConfig,
  { print, complain }: Parameters<Run>[1],
  make: (flags: FeatureFlags, author: FlagAuthor) => Promise<FlagChange>,
): Promise<number> {
  const { config } = given
  const { ifVersion: version, why } = config
  const author = {
    by: config.by as string,
    ...(why !== undefined && { why }),
    ...(version !== undefined && { version }),
  }
  const outcome = await withFlags(given, (flags) => make(flags, author))
  if (outcome.result === 'missing') throw new StartError(noFlag(config))
  if (outcome.result === 'conflict') {
    const has = outcome.flag === null ? 'there is none' : `it has version ${outcome.flag.version}`
    throw new StartError(`${nameOf(config)} was changed by somebody else: ${has}. Look at it, and try again`)
  }
  const { result, flag, announced } = outcome
  if (config.json) print(JSON.stringify(outcome))
  else if (flag === null) print(`The flag ${nameOf(config)} is deleted. Its history stays.`)
  else print(`${flagTable([flag])}${result === 'unchanged' ? '\nIt was so already.' : ''}`)
  if (!announced) complain('Redis could not be told: processes learn of it from Postgres, within their bound.')
  return EXIT.ok
}

/** With both servers, but Redis may be away: what matters is in Postgres. */
async function withFlags<T>(
  { config, nameOf: optionName }: ReadConfig,
  work: (flags: FeatureFlags) => Promise<T>,
): Promise<T> {
  const postgres = new Postgres(config.databaseUrl as string, { schema: config.schema as string, maxConnections: 1 })
  let primitives: Primitives | undefined
  try {
    primitives = await Primitives.connect({
      redis: config.redisUrl as string,
      postgres,
      tenant: config.tenant as string,
      migrate: false,
    })
    return await work(new FeatureFlags(primitives))
  } catch (error) {
    if (HoldfastError.is(error, 'invalid_argument')) throw new StartError(error.message)
    if (error instanceof HoldfastError) throw new StartError(`${optionName('databaseUrl')}: ${error.message}`)
    throw error
  } finally {
    await primitives?.close()
    await postgres.close()
  }
}

const nameOf = ({ flagName }: Config): string => flagName as string

const noFlag = (config: Config): string =>
  `There is no flag ${nameOf(config)} of the tenant ${config.tenant}. Make one with: holdfast flags set`

const flagTable = (flags: readonly Flag[]): string =>
  tableOf(
    ['flag', 'state', 'rules', 'version', 'changed (utc)'],
    flags.map((flag) => [
      flag.name,
      stateOf(flag),
      `${flag.rules.length}`,
      `${flag.version}`,
      momentOf(flag.changedAt),
    ]),
  )

function stateOf({ killed, on, percentage }: Pick<Flag, 'killed' | 'on' | 'percentage'>): string {
  const state = on ? (percentage === 100 ? 'on' : `on for ${percentage} %`) : 'off'
  return killed ? `killed (${state})` : state
}

function ruleText({ when, serve }: FlagRule, at: number): string {
  const conditions = when.map(({ attribute, test, ...rest }) =>
    'value' in rest ? `${attribute} ${test} ${JSON.stringify(rest.value)}` : `${attribute} ${test}`,
  )
  const what = typeof serve === 'number' ? `on for ${serve} %` : serve ? 'on' : 'off'
  return `${at}: ${conditions.join(' and ')}: ${what}`
}

function reasonOf({ because, rule, percentage, place }: FlagAnswer): string {
  if (because === 'killed') return 'it is killed, which beats everything'
  if (because === 'off') return 'it is off for everybody'
  const who = rule === null ? 'no rule is about this subject' : `rule ${rule} is about this subject`
  const where = place === null ? '' : `, who stands at ${place}`
  return `${who}; on for ${percentage} %${where}`
}

/** 2026-11-15 10:15 */
const momentOf = (time: Date): string => time.toISOString().slice(0, 16).replace('T', ' ')
