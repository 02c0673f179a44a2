/** What a Redis that dies has lost, by how it is set up: what the guide says of it is tried here. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RedisHandle, startRedis } from '@holdfast/services'
import { RedisStore } from 'holdfast/stripe402'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { clientOf, transactionOf } from '../../src/stripe402/conformance/subject.js'

let folder: string
let server: RedisHandle | undefined
let redis: Redis
let store: RedisStore
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-stripe402-'))
})
afterEach(async () => {
  redis?.disconnect()
  await server?.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function start(...settings: string[]): Promise<void> {
  server = await startRedis({ folder, source: 'installed', settings })
  connect()
}

function connect(): void {
  redis?.disconnect()
  redis = new Redis((server as RedisHandle).url)
  redis.on('error', () => {})
  store = new RedisStore(redis)
}

/** While the disk is synced, what it has answered waits in its memory: that is written when the sync is over. */
async function written(): Promise<void> {
  await expect.poll(() => redis.info('persistence'), { timeout: 20_000 }).toContain('aof_buffer_length:0\r\n')
}

async function dieAndReturn(): Promise<void> {
  await server?.kill()
  await server?.restart()
  connect()
}

it('with snapshots alone, what came after the last one is lost when the server dies, and not when it is stopped', async () => {
  await start('appendonly no', 'save 60 1000')
  const { clientId } = clientOf()
  await store.createClient(clientOf({ clientId, balance: 1_000 }))
  await redis.save()
  // Fewer than 1,000 changes never make a snapshot, however much time passes.
  expect(await store.deductBalance(clientId, 100)).toBe(900)
  await dieAndReturn()
  expect((await store.getClient(clientId))?.balance).toBe(1_000)
  expect(await store.deductBalance(clientId, 100)).toBe(900)
  await server?.restart()
  connect()
  expect((await store.getClient(clientId))?.balance).toBe(900)
})

it.each(['everysec', 'always'])(
  'with appendfsync %s, nothing that was answered is lost when the server dies',
  async (when) => {
    await start(`appendfsync ${when}`)
    const { clientId } = clientOf()
    await store.createClient(clientOf({ clientId, balance: 100_000 }))
    await Promise.all(Array.from({ length: 200 }, () => store.deductBalance(clientId, 10)))
    await store.deductBalance(clientId, 10, { key: 'call-1' })
    const moved = transactionOf(clientId, 'deduction', 500)
    expect(await store.move(moved)).toBe(97_490)
    if (when === 'everysec') await written()
    await dieAndReturn()
    expect((await store.getClient(clientId))?.balance).toBe(97_490)
    expect(await store.getTransaction(clientId, moved.id)).toEqual(moved)
    // What was remembered is remembered.
    expect(await store.move(moved)).toBe(97_490)
    expect(await store.deductBalance(clientId, 10, { key: 'call-1' })).toBe(97_990)
  },
)

it('a file that was cut off in the middle of a move holds both its sides or neither', async () => {
  await start()
  const { clientId } = clientOf()
  await store.createClient(clientOf({ clientId, balance: 1_000 }))
  await written()
  const files = join(folder, 'appendonlydir')
  const file = join(files, readdirSync(files).find((name) => name.endsWith('.incr.aof')) as string)
  const before = readFileSync(file).length
  const moved = transactionOf(clientId, 'deduction', 100)
  await store.move(moved)
  await written()
  await server?.kill()
  const whole = readFileSync(file)
  const balances = new Set<number | undefined>()
  const step = Math.ceil((whole.length - before) / 12)
  for (let length = before; length <= whole.length + step; length += step) {
    writeFileSync(file, whole.subarray(0, length))
    await server?.restart()
    connect()
    const balance = (await store.getClient(clientId))?.balance
    const { transactions } = await store.listTransactions(clientId)
    expect({ balance, transactions }).toEqual(
      balance === 900 ? { balance: 900, transactions: [moved] } : { balance: 1_000, transactions: [] },
    )
    balances.add(balance)
    await server?.kill()
  }
  expect(balances).toEqual(new Set([1_000, 900]))
})
