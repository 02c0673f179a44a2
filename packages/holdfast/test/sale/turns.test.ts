import { expect, it } from 'vitest'
import { Turns } from '../../src/api/sale/turns.js'

it('takes so many at a time, and the first of each name before the second of any', async () => {
  const turns = new Turns(2)
  const begun: string[] = []
  const ends: (() => void)[] = []
  const ask = (name: string, text: string) =>
    turns.take(name, () => {
      begun.push(text)
      return new Promise<void>((end) => ends.push(end))
    })
  const asked = [
    ask('a', 'a1'),
    ask('a', 'a2'),
    ask('a', 'a3'),
    ask('a', 'a4'),
    ask('b', 'b1'),
    ask('c', 'c1'),
    ask('b', 'b2'),
  ]
  expect(begun).toEqual(['a1', 'a2'])
  for (let n = 3; n <= asked.length; n += 1) {
    ends.shift()?.()
    await expect.poll(() => begun.length).toBe(n)
  }
  expect(begun.slice(2)).toEqual(['a3', 'b1', 'c1', 'a4', 'b2'])
  for (const end of ends) end()
  await Promise.all(asked)
})

it('gives the place of one that fails to the next', async () => {
  const turns = new Turns(1)
  const failing = turns.take('a', () => Promise.reject(new Error('failed')))
  const next = turns.take('b', async () => 'next')
  await expect(failing).rejects.toThrow('failed')
  expect(await next).toBe('next')
  expect(await turns.take('a', async () => 'free')).toBe('free')
})
