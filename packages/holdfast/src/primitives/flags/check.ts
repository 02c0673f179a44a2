import { HoldfastError } from '../../errors/index.js'
import { invalid, oneOf, options as optionsOf, show, text } from '../../input/index.js'
import {
  FLAG_ATTRIBUTE,
  FLAG_LIMITS,
  FLAG_NAME,
  FLAG_TESTS,
  type FlagCondition,
  type FlagDefinition,
  type FlagRule,
  type FlagScalar,
} from './definition.js'

export function checkName(value: unknown): string {
  if (typeof value === 'string' && FLAG_NAME.test(value)) return value
  throw invalid('name', '1 to 64 characters of a-z, 0-9, _, . and -, the first of them a letter or digit', show(value))
}

/** A flag in its one form: everything named, nothing else in it. Null is not nothing: a percentage that got lost must not become 100. */
export function checkDefinition(value: unknown): FlagDefinition {
  if (value === undefined) throw invalid('flag', 'an object', show(value))
  const given = only('flag', value, ['on', 'percentage', 'rules', 'description'])
  return {
    on: checkFlag('on', given.on),
    percentage: given.percentage === undefined ? 100 : checkPercentage('percentage', given.percentage),
    rules: checkRules(given.rules === undefined ? [] : given.rules),
    description: checkDescription(given.description === undefined ? '' : given.description),
  }
}

/** Some of it: what is to be different from what there is. */
export function checkChanges(value: unknown): Partial<FlagDefinition> {
  const given = only('flag', value, ['on', 'percentage', 'rules', 'description'])
  const whole = checkDefinition({ ...given, on: given.on === undefined ? false : given.on })
  return Object.fromEntries(Object.entries(whole).filter(([name]) => given[name] !== undefined))
}

const checkRules = (value: unknown): FlagRule[] =>
  some('rules', value, 0, FLAG_LIMITS.rules).map((rule, at) => checkRule(`rules[${at}]`, rule))

const checkDescription = (value: unknown): string =>
  value === '' ? '' : text('description', value, FLAG_LIMITS.descriptionLength)

function checkRule(at: string, value: unknown): FlagRule {
  const { when, serve } = only(at, value, ['when', 'serve'])
  return {
    when: some(`${at}.when`, when, 1, FLAG_LIMITS.conditions).map((one, n) => checkCondition(`${at}.when[${n}]`, one)),
    serve: typeof serve === 'boolean' ? serve : checkPercentage(`${at}.serve`, serve, 'true, false or '),
  }
}

function checkCondition(at: string, value: unknown): FlagCondition {
  const { attribute, test: asked, value: against } = only(at, value, ['attribute', 'test', 'value'])
  if (typeof attribute !== 'string' || !FLAG_ATTRIBUTE.test(attribute)) {
    throw invalid(`${at}.attribute`, '1 to 64 characters of A-Z, a-z, 0-9, _, . and -', show(attribute))
  }
  const test = oneOf(`${at}.test`, asked, FLAG_TESTS)
  const name = `${at}.value`
  switch (test) {
    case 'equals':
    case 'notEquals':
      return { attribute, test, value: checkScalar(name, against) }
    case 'in':
    case 'notIn':
      return {
        attribute,
        test,
        value: some(name, against, 1, FLAG_LIMITS.values).map((one, n) => checkScalar(`${name}[${n}]`, one)),
      }
    case 'lessThan':
    case 'atMost':
    case 'moreThan':
    case 'atLeast':
      if (typeof against !== 'number' || !Number.isFinite(against)) throw invalid(name, 'a number', show(against))
      return { attribute, test, value: against + 0 }
    case 'startsWith':
    case 'endsWith':
      return { attribute, test, value: text(name, against, FLAG_LIMITS.valueLength) }
    default:
      if (against !== undefined) throw invalid(name, `nothing, since ${test} compares with none,`, show(against))
      return { attribute, test }
  }
}

function checkScalar(name: string, value: unknown): FlagScalar {
  if (typeof value === 'boolean') return value
  if (typeof value === 'string') return text(name, value, FLAG_LIMITS.valueLength)
  if (typeof value === 'number' && Number.isFinite(value)) return value + 0
  throw invalid(name, 'a string, a number, true or false', show(value))
}

/** 0.01 % is one of ten thousand: what lies in between would be told to nobody. */
export function checkPercentage(name: string, value: unknown, or = ''): number {
  const hundredths = typeof value === 'number' ? Math.round(value * 100) : Number.NaN
  if (hundredths >= 0 && hundredths <= 10_000 && Math.abs(hundredths / 100 - (value as number)) < 1e-9) {
    return hundredths / 100
  }
  throw invalid(name, `${or}a percentage from 0 to 100 in steps of 0.01`, show(value))
}

function checkFlag(name: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value
  throw invalid(name, 'true or false', show(value))
}

function some(name: string, value: unknown, min: number, max: number): unknown[] {
  if (!Array.isArray(value)) throw invalid(name, 'an array', show(value))
  if (value.length >= min && value.length <= max) return value
  throw new HoldfastError('invalid_argument', `${name}: expected ${min} to ${max} of them, got ${value.length}`, {
    argument: name,
    limit: max,
  })
}

/** A name that is written wrong would otherwise be a rule that is not there. */
function only(name: string, value: unknown, known: readonly string[]): Record<string, unknown> {
  const given = optionsOf(name, value)
  if (Object.keys(given).every((property) => known.includes(property))) return given
  throw invalid(name, `only ${known.join(', ')}`, 'something else beside them')
}
