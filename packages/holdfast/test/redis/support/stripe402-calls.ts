import { expect } from 'vitest'
import { type ScriptArg, type ScriptRunner, scripts } from '../../../src/redis/index.js'

const CLIENT = 'stripe402:client:c'
const MOVES = 'hf:stripe402:{stripe402:client:c}:moves:v1'
const PENDING = 'hf:stripe402:{stripe402:client:c}:pending:v1'
const ONCE = 'hf:stripe402:{stripe402:client:c}:once:v1:k'
const INDEX = 'stripe402:txns:c'
const NOW = '2024-01-15T10:30:00.000Z'

const transaction = (id: string) => `stripe402:txn:c:${id}`

type Name = {
  [K in keyof typeof scripts]: K extends `stripe402${infer N}` ? Uncapitalize<N> : never
}[keyof typeof scripts]

/** One of everything that a stripe402 store asks of Redis: enough to come by every call that stands in its scripts. */
export async function useStripe402(on: ScriptRunner): Promise<void> {
  const run = async (name: Name, keys: readonly string[], ...args: ScriptArg[]) => {
    const script = scripts[`stripe402${name[0]?.toUpperCase()}${name.slice(1)}` as keyof typeof scripts]
    return textOf(await on.run(script, keys, args))
  }
  expect(await run('create', [CLIENT], 'c', 'cus_1', 1_000, 'usd', NOW, NOW)).toBe('created')
  expect(await run('create', [CLIENT], 'c', 'cus_2', 0, 'usd', NOW, NOW)).toBe('there')
  expect(await run('change', [CLIENT, 'stripe402:client:d'], 3, NOW, '*2', '-100', '-5000', '+1')).toBe(
    '900 short unknown',
  )
  expect(await run('changeOnce', [CLIENT, ONCE], 1, NOW, 60_000, '-100')).toBe('800')
  expect(await run('changeOnce', [CLIENT, ONCE], 1, NOW, 60_000, '-100')).toBe('800')

  const move = [CLIENT, MOVES, transaction('t1'), INDEX]
  expect(await run('move', move, 't1', '-100', '{"t":1}', 1, NOW)).toEqual(['moved', '700'])
  expect(await run('move', move, 't1', '-100', '{"t":1}', 1, NOW)).toEqual(['again', '700'])
  const filed = [transaction('t2'), INDEX]
  expect(await run('file', filed, 't2', '{"t":2}', 2)).toEqual(['filed'])
  expect(await run('file', filed, 't2', '{"t":3}', 3)).toEqual(['other', '{"t":2}', '2'])
  const recorded = [CLIENT, MOVES, transaction('t2'), INDEX]
  expect(await run('move', recorded, 't2', '-1', '{"t":2}', 2, NOW)).toEqual(['recorded', '700', '{"t":2}'])
  expect(await run('page', [INDEX], 'oldest', 10, '1', 1, 't1')).toEqual(['t2', '2'])
  expect(await run('page', [INDEX], 'newest', 10, '1', 2, 't2')).toEqual(['t1', '1'])

  const apart = [CLIENT, MOVES, PENDING]
  expect(await run('moveApart', apart, 't4', '+50', '1+{"t":4}', NOW, '0')).toEqual(['moved', '750', '1+{"t":4}'])
  expect(await run('moveApart', apart, 't5', '+50', '1+{"t":5}', NOW, '1')).toEqual(['recorded', '750'])
  expect(await run('note', [PENDING], 't6', '1-{"t":6}')).toBe('1-{"t":6}')
  expect(await run('moveApart', apart, 't6', '+50', '1+{"t":6}', NOW, '0')).toEqual(['busy', '', '1-{"t":6}'])
  expect(await run('pending', [PENDING])).toEqual(['t4', '1+{"t":4}', 't6', '1-{"t":6}'])
  expect(await run('keep', [transaction('t6')], '{"t":6}')).toBe('{"t":6}')
  expect(await run('drop', [transaction('t6')], '{"t":6}')).toBe(1)
  expect(await run('noted', [PENDING, MOVES], 't6', '1-{"t":6}', '1')).toEqual(['t4', '1+{"t":4}'])
  const pruned = [INDEX, MOVES, transaction('t1'), transaction('t2')]
  expect(await run('prune', pruned, 2, 2, 't1', 't2')).toBe(1)
}

function textOf(reply: unknown): unknown {
  if (Array.isArray(reply)) return reply.map(textOf)
  return reply instanceof Buffer ? reply.toString() : reply
}
