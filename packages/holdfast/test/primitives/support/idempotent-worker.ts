/** A process that does what a key stands for, once, and dies at the place that it is told. */
import { Idempotency, Primitives } from 'holdfast/primitives'
import pg from 'pg'
import { PATIENT } from './patient.js'

export type Place = 'claimed' | 'effect' | 'completed' | 'committed'

export interface Orders {
  readonly redis: string
  readonly postgres: string
  readonly secret: string
  readonly operation: string
  readonly leaseMs: number
  readonly dieAt: Place
}

const { redis, postgres, secret, operation, leaseMs, dieAt } = JSON.parse(process.argv[2] as string) as Orders

function at(place: Place): void {
  if (place === dieAt) process.kill(process.pid, 'SIGKILL')
}

const primitives = await Primitives.connect({ redis, postgres, secret, ...PATIENT })
const orders = new Idempotency<string>(primitives, operation, { durable: true, leaseMs })
const client = new pg.Client(postgres)
await client.connect()
await orders.run('key', {}, async ({ completeIn, attempt }) => {
  at('claimed')
  await client.query('BEGIN')
  await client.query('INSERT INTO effects VALUES ($1, $2)', [operation, process.pid])
  at('effect')
  await completeIn(client, `attempt ${attempt}`)
  at('completed')
  await client.query('COMMIT')
  at('committed')
  return 'It was to die'
})
