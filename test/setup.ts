/**
 * Global set-up of every test run: private servers, started when a test first asks for them and stopped at the end.
 *
 * Test files run in processes of their own, but share the servers: they ask this process over HTTP (see servers.ts, which
 * is what tests import). A run that needs no server starts none.
 */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startPostgres, startRedis, startRedisCluster, startRedisSentinel } from '@holdfast/services'
import { Client } from 'pg'
import type { TestProject } from 'vitest/node'
import { migrate, Postgres } from '../packages/holdfast/src/postgres/index.js'

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the process that owns the shared servers answers. */
    serversUrl: string
  }
}

const BUILD = fileURLToPath(new URL('../scripts/build.mjs', import.meta.url))
const EMPTY = 'template_empty'
const MIGRATED = 'template_migrated'
const REDIS_DATABASES = 4_096
const NEW_SECRET = 'UPDATE holdfast.settings SET secret = sha256(uuid_send(gen_random_uuid()))'
/** Nobody dies in the shared groups. A machine that stands still for a moment must not be taken for that: a failover loses data. */
const DOWN_AFTER_MS = 10_000

interface Stoppable {
  stop(): Promise<void>
}

const running: Promise<Stoppable>[] = []

/** Starts at the first call; every caller gets the same one. */
function shared<T extends Stoppable>(start: () => Promise<T>): () => Promise<T> {
  let started: Promise<T> | undefined
  return () => {
    if (!started) {
      started = start()
      running.push(started)
    }
    return started
  }
}

const postgres = shared(async () => {
  const server = await startPostgres({ durable: false, settings: { max_connections: '300' } })
  await inDatabase(server.url, `CREATE DATABASE ${EMPTY}`)
  await inDatabase(server.url, `CREATE DATABASE ${MIGRATED}`)
  const template = new Postgres(inServer(server.url, MIGRATED))
  await migrate(template)
  // A template can be copied only while nobody is connected to it.
  await template.close()
  return server
})

const redis = shared(() => startRedis({ source: 'installed', settings: [`databases ${REDIS_DATABASES}`] }))

const sentinel = shared(() => startRedisSentinel({ downAfterMs: DOWN_AFTER_MS }))
const cluster = shared(() => startRedisCluster({ nodeTimeoutMs: DOWN_AFTER_MS }))

const inServer = (url: string, database: string) => Object.assign(new URL(url), { pathname: `/${database}` }).href

async function inDatabase(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

let databases = 0
let redisDatabases = 0

async function freshDatabase(template: string): Promise<string> {
  const { url } = await postgres()
  const name = `test_${++databases}`
  await inDatabase(url, `CREATE DATABASE ${name} TEMPLATE ${template}`)
  // A copy of a database is that database, for a Redis that both share: this is to be another one.
  if (template === MIGRATED) await inDatabase(inServer(url, name), NEW_SECRET)
  return inServer(url, name)
}

const answers: Record<string, () => Promise<unknown>> = {
  '/fresh-database': () => freshDatabase(MIGRATED),
  '/empty-database': () => freshDatabase(EMPTY),
  async '/fresh-redis'() {
    const { url } = await redis()
    if (redisDatabases === REDIS_DATABASES)
      throw new Error(`More than ${REDIS_DATABASES} fresh Redis databases in one run`)
    return `${url}/${redisDatabases++}`
  },
  async '/sentinel'() {
    const { name, sentinels } = await sentinel()
    return { name, sentinels }
  },
  '/built': () => build(),
  async '/cluster'() {
    return (await cluster()).addresses
  },
}

let building: Promise<true> | undefined
function build(): Promise<true> {
  building ??= promisify(execFile)(process.execPath, [BUILD]).then(() => true)
  return building
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = createServer((request, response) => {
    const answer = answers[request.url ?? '']
    if (!answer) return void response.writeHead(404).end()
    answer().then(
      (body) => response.end(JSON.stringify(body)),
      (error: Error) => response.writeHead(500).end(error.message),
    )
  })
  // Connections are the tests' to end: one that is ended here while a test is about to ask on it would fail that test.
  server.keepAliveTimeout = 0
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  project.provide('serversUrl', `http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  return async () => {
    server.close()
    server.closeAllConnections()
    const started = await Promise.allSettled(running)
    await Promise.all(started.map((one) => (one.status === 'fulfilled' ? one.value.stop() : undefined)))
  }
}
