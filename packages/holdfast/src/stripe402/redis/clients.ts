import { HoldfastError } from '../../errors/index.js'
import { type BorrowedRedis, WRONG_TYPE } from '../../redis/index.js'
import { clientDamaged } from '../failures.js'
import type { ClientRecord } from '../types.js'
import type { StoreKeys } from './keys.js'
import { CLIENT_FIELDS, readClient } from './records.js'

/** Keys a SCAN looks at: a few hundred microseconds of the server's time. */
const PORTION = 500
const NAMED_MAX = 5

/** What every walk asks before it goes on. */
export function stopIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new HoldfastError('aborted', 'the walk was stopped by its signal')
}

/** Client ids that have a key of this kind, of every master. */
export async function* scanIds(
  redis: BorrowedRedis,
  keys: StoreKeys,
  purpose: 'client' | 'txns',
  signal: AbortSignal | undefined,
): AsyncGenerator<string[]> {
  stopIfAborted(signal)
  for await (const found of redis.scan(purpose === 'client' ? keys.clients : keys.indexes, PORTION)) {
    const ids = new Set(found.map((key) => keys.read(key, purpose)).filter((id) => id !== null))
    yield [...ids]
    stopIfAborted(signal)
  }
}

/** Every client, in no order. One may come twice while Redis resizes its table or a slot is on the move. */
export async function* listClients(
  redis: BorrowedRedis,
  keys: StoreKeys,
  { signal, onDamaged }: { signal: AbortSignal | undefined; onDamaged: ((error: Error) => void) | undefined },
): AsyncGenerator<ClientRecord> {
  const damaged: HoldfastError[] = []
  let count = 0
  const report = (error: HoldfastError) => {
    count += 1
    if (onDamaged) onDamaged(error)
    else if (damaged.length < NAMED_MAX) damaged.push(error)
  }
  for await (const ids of scanIds(redis, keys, 'client', signal)) {
    const read = await Promise.all(ids.map((id) => redis.ask('hmget', keys.client(id), ...CLIENT_FIELDS)))
    for (const [at, id] of ids.entries()) {
      const client = clientFrom(id, read[at])
      if (client instanceof HoldfastError) report(client)
      else if (client !== null) yield client
    }
  }
  const [first] = damaged
  if (first === undefined) return
  throw new HoldfastError('client_damaged', `${count} of the clients can't be read: ${first.message}`, {
    count,
    clients: damaged.map(({ facts }) => facts.client).join(', '),
  })
}

/** Null: it is gone by now. */
function clientFrom(clientId: string, values: unknown): ClientRecord | HoldfastError | null {
  if (values === WRONG_TYPE) return clientDamaged(clientId, 'its key', 'a hash', 'another type')
  const fields = values as (string | null)[]
  if (fields.every((value) => value === null)) return null
  try {
    // Null to who asks for it, as published; to who counts all the money it is money that nobody owns.
    return readClient(clientId, fields) ?? clientDamaged(clientId, 'clientId', 'one', 'none')
  } catch (error) {
    if (HoldfastError.is(error, 'client_damaged')) return error
    throw error
  }
}
