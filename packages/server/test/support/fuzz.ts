/** Requests made from the description of the API and then broken, from a seed. */
import { bodyOf, type Described, type Schema } from './openapi.js'

export class Chance {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 up to and without `end`. */
  below(end: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * end)
  }

  of<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T
  }

  once(times: number): boolean {
    return this.below(times) === 0
  }
}

export interface Sent {
  method: string
  url: string
  headers: Record<string, string>
  payload?: string
}

const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)

/** What no member of any body may be: not even the ones that take any JSON, which are never broken this way. */
const WRONG = [null, true, 'x', '1', '', [], [[1]], {}, { amount: 1 }, -1, 1.5, 1e300, -0.1, 2 ** 53, 'x'.repeat(300)]

const BROKEN_JSON = [
  '{',
  '{"amount":1',
  '[1,2]',
  'null',
  '"text"',
  '12',
  '{"amount":1e999}',
  '{"amount":01}',
  '{"__proto__":{"amount":1}}',
  '{"constructor":{"prototype":{"x":1}}}',
  '{"amount":NaN}',
  '\u0000',
  '\ufeff{"amount":"1"}',
  deep(5_000),
  `{"amount":${deep(2_000)}}`,
  `{"a":${'{"a":'.repeat(1_000)}1${'}'.repeat(1_000)}}`,
  '{"amount":"\\ud800"}',
  `{"amount":"${'9'.repeat(30_000)}"}`,
  '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
]

const CONTENT_TYPES = [
  'text/plain',
  'application/xml',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/jsonx',
  'json',
  '/',
  'application/json/../x',
]

/** Pieces of a path that are no id, or one of nobody's. */
const ODD_IDS = [
  '%00',
  'a%00b',
  '%0d%0aSet-Cookie:x',
  '%ff',
  '%c0%ae%c0%ae',
  '%zz',
  '%',
  '%2e%2e%2f%2e%2e%2fetc',
  '..;',
  '%E2%80%AE',
  'x'.repeat(256),
  'x'.repeat(4_000),
  '%F0%9F%98%80'.repeat(256),
  "'%20OR%201=1--",
  '$%7Bjndi:x%7D',
  '__proto__',
  'constructor',
  '%7Esettle:x',
]

const BAD_QUERIES = [
  'limit=0',
  'limit=-1',
  'limit=1001x',
  'limit=1e9',
  'limit=99999',
  'limit=1&limit=2',
  'limit[]=1',
  'limit=%00',
  'seq=1&time=1',
  'seq=-1',
  'seq=9e99',
  'time=-5',
  'pending=maybe',
  'after=-1',
  'after=%00',
  'after=x%ff',
]

const BAD_KEYS = ['', '""', '"', '"a"b', '~own', 'x'.repeat(256), '\u00e9', '"\\x"']

/** A value that fits the schema. */
export function fitting(schema: Schema, chance: Chance, ids: readonly string[]): unknown {
  if (schema.oneOf) return fitting(chance.of(schema.oneOf), chance, ids)
  if ('const' in schema) return schema.const
  if (schema.enum) return chance.of(schema.enum)
  if (schema.type === 'integer') {
    const { minimum = 0, maximum = 2 ** 53 - 1 } = schema
    return chance.of([minimum, minimum + chance.below(100), maximum])
  }
  if (schema.type === 'number') return 0.5
  if (schema.type === 'string') return chance.of([...ids, 'a', 'usd', 'x'.repeat(255), '😀'])
  if (schema.type === 'boolean') return chance.once(2)
  if (schema.type === 'array') {
    const length = (schema.minItems ?? 0) + chance.below(3)
    return Array.from({ length }, () => fitting(schema.items ?? {}, chance, ids))
  }
  if (schema.type === 'object') {
    const members = Object.entries(schema.properties ?? {}).filter(
      ([name]) => schema.required?.includes(name) || chance.once(3),
    )
    return Object.fromEntries(members.map(([name, member]) => [name, fitting(member, chance, ids)]))
  }
  return chance.of([null, 1, 'any', { nested: [1, { deep: true }] }])
}

/** Breaks what fits in one place, so that it can't fit any more. */
function broken(schema: Schema, value: unknown, chance: Chance): unknown {
  const body = value as Record<string, unknown>
  const shape = schema.oneOf?.find(({ properties = {} }) =>
    Object.entries(properties).every(
      ([name, { enum: allowed }]) => !allowed || !(name in body) || allowed.includes(body[name]),
    ),
  )
  const { properties = {}, required = [] } = shape ?? schema
  const strict = Object.entries(properties).filter(([, member]) => member.type !== undefined || member.enum)
  const [name, member] = strict.length === 0 ? ['', {}] : chance.of(strict)
  if (strict.length === 0 || chance.once(4)) return { ...body, [chance.of(['amuont', 'tenant', 'x', 'Amount'])]: 1 }
  if (required.includes(name) && chance.once(3)) {
    const { [name]: _, ...rest } = body
    return rest
  }
  const wrong = WRONG.filter((one) => !fits(member, one))
  return { ...body, [name]: chance.of(wrong) }
}

function fits(schema: Schema, value: unknown): boolean {
  if ('const' in schema) return value === schema.const
  if (schema.enum) return schema.enum.includes(value)
  if (schema.type === 'integer' || schema.type === 'number') {
    const whole = typeof value === 'number' && (schema.type === 'number' || Number.isInteger(value))
    return whole && value >= (schema.minimum ?? -Infinity) && value <= (schema.maximum ?? Infinity)
  }
  if (schema.type === 'string') {
    return (
      typeof value === 'string' && value.length >= (schema.minLength ?? 0) && value.length <= (schema.maxLength ?? 1e9)
    )
  }
  if (schema.type === 'boolean') return typeof value === 'boolean'
  // What is in it is not looked at: it may or may not fit.
  return typeof value === 'object'
}

export interface Situation {
  chance: Chance
  /** Ids of wallets that are there. */
  ids: readonly string[]
  credential: string | null
}

/** As a client of the API would send it. */
export function proper(operation: Described, { chance, ids, credential }: Situation): Sent {
  const schema = bodyOf(operation)
  const parameters = operation.parameters ?? []
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name) =>
    encodeURIComponent(name === 'id' ? chance.of(ids) : name === 'code' ? 'timeout' : 'h'),
  )
  const query = parameters
    .filter((one) => one.in === 'query' && chance.once(2))
    .map(({ name, schema }) => `${name}=${encodeURIComponent(String(fitting(schema, chance, ids)))}`)
  return {
    method: operation.method,
    url: query.length > 0 ? `${path}?${query.join('&')}` : path,
    headers: {
      ...(credential !== null && { authorization: `Bearer ${credential}` }),
      ...(parameters.some(({ name }) => name === 'idempotency-key') && {
        'idempotency-key': `fuzz-${chance.below(1e9)}`,
      }),
      ...(schema && { 'content-type': 'application/json' }),
    },
    ...(schema && { payload: JSON.stringify(fitting(schema, chance, ids)) }),
  }
}

/** What the server must turn away, because at least one thing about it is certainly wrong. */
export function improper(operation: Described, situation: Situation): Sent {
  const { chance, ids } = situation
  const sent = proper(operation, situation)
  const schema = bodyOf(operation)
  const ways: (() => Sent)[] = [
    () => ({
      ...sent,
      headers: { ...sent.headers, authorization: chance.of(['', 'Bearer', 'Bearer hf_x', 'Basic eDp5']) },
    }),
    () => ({
      ...sent,
      url: sent.url.replace(/[^/?]+(?=\?|$)/, (last) => `${last}/${chance.of(['%00', 'x', '..%2f', ';'])}`),
    }),
  ]
  if (operation.path.includes('{id}')) {
    const id = chance.of(ODD_IDS)
    const url = operation.path.replace('{id}', id).replaceAll(/\{\w+\}/g, 'h')
    // Some of these are ids after all: then what is wrong with them is that there is no such wallet.
    if (operation.operationId !== 'openWallet' && !operation.operationId.endsWith('Token'))
      ways.push(() => ({ ...sent, url }))
  }
  if (schema) {
    ways.push(
      () => ({ ...sent, payload: chance.of(BROKEN_JSON) }),
      () => ({ ...sent, headers: { ...sent.headers, 'content-type': chance.of(CONTENT_TYPES) } }),
    )
    for (let n = 0; n < 6; n += 1) {
      ways.push(() => ({ ...sent, payload: JSON.stringify(broken(schema, fitting(schema, chance, ids), chance)) }))
    }
  }
  if ('idempotency-key' in sent.headers) {
    const { 'idempotency-key': _, ...keyless } = sent.headers
    ways.push(
      () => ({ ...sent, headers: keyless }),
      () => ({ ...sent, headers: { ...sent.headers, 'idempotency-key': chance.of(BAD_KEYS) } }),
    )
  }
  return chance.of(ways)()
}

/** Whatever else there is: what comes back may be a yes, where that is none of the victim's business. */
export function hostile(operation: Described, situation: Situation): Sent {
  const { chance } = situation
  const sent = chance.once(3) ? improper(operation, situation) : proper(operation, situation)
  const ways: (() => Sent)[] = [
    () => sent,
    () => ({ ...sent, url: `${sent.url.split('?')[0]}?${chance.of(BAD_QUERIES)}` }),
    () => ({
      ...sent,
      headers: { ...sent.headers, prefer: chance.of(['durability=memory', 'durability=', 'x;;,=', ',']) },
    }),
    () => ({ ...sent, headers: { ...sent.headers, 'x-request-id': chance.of(['a b', '{}', 'x'.repeat(200)]) } }),
    () => ({ ...sent, headers: { ...sent.headers, 'content-encoding': chance.of(['gzip', 'br', 'x']) } }),
    () => ({ ...sent, headers: { ...sent.headers, 'x-tenant': 'victim', 'x-http-method-override': 'DELETE' } }),
    () => ({ ...sent, method: chance.of(['GET', 'PUT', 'POST', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']) }),
  ]
  return chance.of(ways)()
}
