import { FLAGS, FLAGS_CHANGES } from '../command-names.js'
import { option } from '../option.js'
import { integer, json, oneOf, plainText } from '../parsers.js'

const OF_ONE = FLAGS.filter((name) => name !== 'flags list' && name !== 'flags history')

/** 0 to 100, in steps of 0.01. */
const percentage = (text: string): number | undefined => {
  const value = /^\d{1,3}(\.\d{1,2})?$/.test(text) ? Number(text) : Number.NaN
  return value <= 100 ? value : undefined
}

/** Feature flags. In this order: what is given by its place comes first. */
export const FLAG_OPTIONS = {
  flagName: option<string>({
    flag: 'flag',
    hint: 'flag',
    argument: true,
    text: 'The flag, by its name',
    commands: OF_ONE,
    required: OF_ONE,
    expected: '1 to 64 of a-z, 0-9, _, . and -, the first of them a letter or digit',
    parse: (text) => (/^[a-z0-9][a-z0-9_.-]{0,63}$/.test(text) ? text : undefined),
  }),
  newPercentage: option<number>({
    flag: 'percentage',
    hint: 'percentage',
    argument: true,
    text: 'For how much of the subjects it is on that no rule is about',
    commands: ['flags percent'],
    required: ['flags percent'],
    expected: 'a number from 0 to 100 with at most two decimals',
    parse: percentage,
  }),
  newRules: option<string>({
    flag: 'rules',
    hint: 'json',
    argument: true,
    text: 'Its rules, as a JSON array: [{"when":[{"attribute":"country","test":"in","value":["DE"]}],"serve":true}]',
    commands: ['flags rules'],
    required: ['flags rules'],
    expected: 'a JSON array',
    parse: json,
  }),
  flagState: option<'on' | 'off'>({
    flag: 'state',
    hint: 'state',
    text: 'Whether it is on at all. A new flag is off unless this says otherwise',
    commands: ['flags set'],
    values: ['on', 'off'],
    expected: 'on or off',
    parse: oneOf(['on', 'off']),
  }),
  percentage: option<number>({
    flag: 'percent',
    hint: 'percentage',
    text: 'For how much of the subjects it is on that no rule is about. A new flag: 100',
    commands: ['flags set'],
    expected: 'a number from 0 to 100 with at most two decimals',
    parse: percentage,
  }),
  rules: option<string>({
    flag: 'rules',
    hint: 'json',
    text: 'Its rules, as a JSON array. The first whose conditions all hold decides',
    commands: ['flags set'],
    expected: 'a JSON array',
    parse: json,
  }),
  flagDescription: option<string>({
    flag: 'description',
    hint: 'text',
    text: 'What it is for',
    commands: ['flags set'],
    expected: '1 to 500 characters, none of them control characters',
    parse: plainText(500),
  }),
  historyOf: option<string>({
    flag: 'flag',
    hint: 'flag',
    text: 'Only of this one',
    commands: ['flags history'],
    expected: '1 to 64 of a-z, 0-9, _, . and -',
    parse: plainText(64),
  }),
  subject: option<string>({
    flag: 'subject',
    hint: 'text',
    text: 'Whom it is asked for: a user, an account, a device',
    commands: ['flags check'],
    expected: '1 to 1024 characters, none of them control characters',
    parse: plainText(1_024),
  }),
  attributes: option<string>({
    flag: 'attributes',
    hint: 'json',
    text: 'What is known of the subject, as a JSON object: {"country":"DE","age":20}',
    commands: ['flags check'],
    expected: 'a JSON object',
    parse: json,
  }),
  ifVersion: option<number>({
    flag: 'if-version',
    hint: 'number',
    text: 'Only if this is its version: 0 if there is none',
    commands: FLAGS_CHANGES,
    expected: `a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`,
    parse: integer(0, Number.MAX_SAFE_INTEGER),
  }),
  by: option({
    flag: 'by',
    variable: 'USER',
    hint: 'name',
    text: 'Who changes it, for the history',
    commands: FLAGS_CHANGES,
    default: 'somebody at a terminal',
    expected: '1 to 255 characters, none of them control characters',
    parse: plainText(255),
  }),
  why: option<string>({
    flag: 'why',
    hint: 'text',
    text: 'Why, for the history',
    commands: FLAGS_CHANGES,
    expected: '1 to 1000 characters, none of them control characters',
    parse: plainText(1_000),
  }),
} as const
