import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { alive, startParent, until } from './parent.js'

const ENDS = ['SIGKILL', 'SIGINT', 'throw', 'exit'] as const

test.each(ENDS)('servers and temporary folders are gone after their parent ended by %s', async (how) => {
  const parent = await startParent('temporary')
  const { pids, folder } = parent.started
  const before = alive(pids)
  expect(before.length).toBeGreaterThan(pids.length)
  expect(existsSync(folder)).toBe(true)

  await parent.end(how)
  await until(() => alive(before).length === 0 && !existsSync(folder))
})

test('a Cluster ends with its parent', async () => {
  const parent = await startParent('cluster')
  const { pids } = parent.started
  expect(alive(pids)).toHaveLength(6)
  await parent.end('SIGKILL')
  await until(() => alive(pids).length === 0)
})

test('a paused server, too, ends with its parent', async () => {
  const parent = await startParent('paused')
  const { pids, folder } = parent.started
  const before = alive(pids)
  await parent.end('SIGKILL')
  await until(() => alive(before).length === 0 && !existsSync(folder))
})
