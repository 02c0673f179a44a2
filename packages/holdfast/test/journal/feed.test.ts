import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { appendValues } from '../../src/journal/append-values.js'
import { cutRuns, type Filed, PostgresFeed, PostgresJournal } from '../../src/journal/index.js'
import { Postgres } from '../../src/postgres/index.js'
import { append, newWallet, run, type Writer } from './journals.js'

const KEEP_MS = 604_800_000

let url: string
let postgres: Postgres
let journal: PostgresJournal
let feed: PostgresFeed

beforeEach(async () => {
  // What waits for another here waits until a test lets that one go on.
  const patient = { lockTimeoutMs: 30_000, statementTimeoutMs: 30_000, idleInTransactionTimeoutMs: 30_000 }
  url = await freshDatabase()
  postgres = new Postgres(url, { maxConnections: 20, ...patient })
  journal = new PostgresJournal(postgres)
  feed = new PostgresFeed(postgres)
})
afterEach(() => postgres.close())

/** An append that is made at once and committed when the returned function is called. */
async function appendAndWait(filed: readonly Filed[]): Promise<() => Promise<void>> {
  let commit = (): void => {}
  const asked = new Promise<void>((resolve) => {
    commit = resolve
  })
  let made = (): void => {}
  const done = new Promise<void>((resolve) => {
    made = resolve
  })
  const { runs } = cutRuns(filed)
  const values = appendValues(runs) as Buffer[]
  const committed = postgres.transaction(async (tx) => {
    const alone = runs.length === 1 && runs[0]?.entries.length === 1
    await (alone ? tx.query('appendOne', values) : tx.query('append', [...values, false]))
    made()
    await asked
  })
  await Promise.race([done, committed])
  return async () => {
    commit()
    await committed
  }
}

/** All that the feed has after a position, as `wallet seq`. */
async function told(after: number): Promise<string[]> {
  const items: string[] = []
  for (let upTo = after; ; ) {
    const { position } = await feed.relay(KEEP_MS)
    if (position === upTo) return items
    while (upTo < position) {
      const { rows, end } = await feed.read({ tenants: ['test'], after: upTo, upTo: position })
      for (const row of rows) for (const { wallet, entry } of row.items) items.push(`${wallet} ${entry?.seq}`)
      upTo = end
    }
  }
}

const nameOf = ({ ref }: Writer, seq: number): string => `id-${ref} ${seq}`

describe('the feed', () => {
  it('passes nothing over that commits late, where a cursor over numbers does', async () => {
    await feed.start(KEEP_MS)
    const { position } = await feed.relay(KEEP_MS)
    const [slow, quick] = [await newWallet(journal), await newWallet(journal)]
    const commit = await appendAndWait(slow.file(slow.credit('a')))
    await append(journal, quick.file(quick.credit('a')))

    const naive = { cursor: 0, seen: 0 }
    const readNaively = async (): Promise<void> => {
      const rows = await postgres.transaction((tx) =>
        tx.execute<{ id: string }>('test', `SELECT id FROM feed_inbox WHERE id > ${naive.cursor} ORDER BY id`),
      )
      naive.seen += rows.length
      naive.cursor = Math.max(naive.cursor, ...rows.map(({ id }) => Number(id)))
    }
    await readNaively()
    expect(await told(position)).toEqual([nameOf(quick, 1)])
    await commit()
    await readNaively()
    expect(naive.seen).toBe(1)
    expect(await told(position)).toEqual([nameOf(quick, 1), nameOf(slow, 1)])
  })

  it('has every entry once and each wallet in order, whoever writes, relays and commits when', async () => {
    await feed.start(KEEP_MS)
    const { position } = await feed.relay(KEEP_MS)
    const wallets = await Promise.all(Array.from({ length: 12 }, () => newWallet(journal)))
    let writing = true
    const relaying = Array.from({ length: 3 }, async () => {
      while (writing) await feed.relay(KEEP_MS)
    })
    const writers = wallets.map(async (wallet, lane) => {
      for (let n = 0; n < 12; n += 1) {
        const entries = Array.from({ length: 1 + ((lane + n) % 3) }, (_, at) => wallet.credit(`${n}-${at}`))
        const commit = await appendAndWait(wallet.file(...entries))
        await new Promise((resolve) => setTimeout(resolve, (lane * 7 + n * 5) % 11))
        await commit()
      }
    })
    await Promise.all(writers)
    writing = false
    await Promise.all(relaying)

    const items = await told(position)
    for (const wallet of wallets) {
      const own = items.filter((item) => item.startsWith(`id-${wallet.ref} `))
      expect(own).toEqual(Array.from({ length: wallet.state.seq }, (_, n) => nameOf(wallet, n + 1)))
    }
    expect(items).toHaveLength(wallets.reduce((sum, { state }) => sum + state.seq, 0))
  })

  it('notes nothing while nobody asks; and from when somebody does, everything', async () => {
    const wallet = await newWallet(journal)
    const other = await newWallet(journal)
    await append(journal, wallet.file(wallet.credit('before')))
    // It has read that nobody asks, and is not done.
    const commit = await appendAndWait(wallet.file(wallet.credit('during')))
    let started = false
    const starting = feed.start(KEEP_MS).then(() => {
      started = true
    })
    // This one comes after, and waits for the answer to whether anybody asks.
    await until(async () => (await waiting()) === 1)
    const after = append(journal, other.file(other.credit('after')))
    await until(async () => (await waiting()) === 2)
    expect(started).toBe(false)
    await commit()
    await starting
    await after
    const first = await rowsOfInbox()
    expect(first).toBe(1)
    expect(await told(0)).toEqual([nameOf(other, 1)])
  })

  it('begins while somebody reads all tables for long, and holds up nobody', async () => {
    const wallet = await newWallet(journal)
    // As a dump does first, until it is done.
    await postgres.transaction(async (tx) => {
      await tx.execute('test', 'LOCK TABLE settings, wallets, entries, sales, feed, feed_inbox IN ACCESS SHARE MODE')
      await run(postgres, `UPDATE settings SET feed_until = 0`)
      const impatient = new Postgres(url, { lockTimeoutMs: 1_000 })
      await new PostgresFeed(impatient).start(KEEP_MS).finally(() => impatient.close())
      await append(journal, wallet.file(wallet.credit('meanwhile')))
    })
    expect(await told(0)).toEqual([nameOf(wallet, 1)])
  })

  it('begins for a role that owns no table', async () => {
    const role = `app_${process.pid}_${Date.now()}`
    await run(
      postgres,
      `CREATE ROLE ${role} LOGIN PASSWORD 'test'; GRANT USAGE ON SCHEMA holdfast TO ${role};
       GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA holdfast TO ${role}`,
    )
    const theirs = new URL(url)
    theirs.username = role
    theirs.password = 'test'
    const app = new Postgres(theirs.href)
    await new PostgresFeed(app).start(KEEP_MS).finally(() => app.close())
    await run(postgres, `DROP OWNED BY ${role}; DROP ROLE ${role}`)
  })

  it('begins anew behind another mark when nobody has asked for too long', async () => {
    await feed.start(KEEP_MS)
    const { position, mark } = await feed.relay(KEEP_MS)
    await feed.start(KEEP_MS)
    expect(await feed.relay(KEEP_MS)).toMatchObject({ position, mark, feeding: true })
    await run(postgres, 'UPDATE settings SET feed_until = clock_ms() - 1')
    const wallet = await newWallet(journal)
    await append(journal, wallet.file(wallet.credit('unseen')))
    expect(await feed.relay(KEEP_MS)).toMatchObject({ position, feeding: false })
    await feed.start(KEEP_MS)
    expect((await feed.markAt(position)).mark).toBeNull()
    expect(await told(position + 1)).toEqual([])
  })

  it('is moved on by who reads it, and pruned but for its last row', async () => {
    await feed.start(KEEP_MS)
    await run(postgres, `UPDATE settings SET feed_until = clock_ms() + ${KEEP_MS / 2}`)
    await feed.relay(KEEP_MS)
    const [row] = await postgres.transaction((tx) =>
      tx.execute<{ left: string }>('test', 'SELECT feed_until - clock_ms() AS left FROM settings'),
    )
    expect(Number(row?.left)).toBeGreaterThan(KEEP_MS - 60_000)

    const wallet = await newWallet(journal)
    for (const key of ['a', 'b', 'c']) {
      await append(journal, wallet.file(wallet.credit(key)))
      await feed.relay(KEEP_MS)
    }
    const { position, mark } = await feed.relay(KEEP_MS)
    await run(postgres, 'UPDATE feed SET at = at - 1000')
    await feed.prune(500)
    expect((await feed.markAt(position)).mark).toBe(mark)
    expect((await feed.markAt(position - 1)).mark).toBeNull()
  })

  it('cuts what is much into rows, and tells the tenants apart', async () => {
    await feed.start(KEEP_MS)
    const { position } = await feed.relay(KEEP_MS)
    const [mine, theirs] = [await newWallet(journal), await newWallet(journal, 'other')]
    for (let n = 0; n < 3; n += 1) {
      const many = Array.from({ length: 400 }, (_, at) => mine.credit(`${n}-${at}`))
      await append(journal, [...mine.file(...many), ...theirs.file(theirs.credit(`${n}`))])
    }
    expect(await told(position)).toEqual(Array.from({ length: 1_200 }, (_, n) => nameOf(mine, n + 1)))
    const { position: upTo } = await feed.relay(KEEP_MS)
    const { rows } = await feed.read({ tenants: ['other'], after: position, upTo })
    expect(rows.flatMap(({ items }) => items.map(({ entry }) => entry?.key))).toEqual(['0', '1', '2'])
    const one = await feed.read({ tenants: ['test'], after: position, upTo, wallet: `id-${theirs.ref}` })
    expect(one.rows.flatMap(({ items }) => items)).toEqual([])
    const { rows: own } = await feed.read({ tenants: ['test'], after: position, upTo, wallet: `id-${mine.ref}` })
    const entries = own.flatMap(({ items }) => items.map(({ entry }) => entry))
    expect(entries).toEqual(await journal.entries(mine.ref, 1, entries.length))
    expect(entries.length).toBeGreaterThan(500)
  })
})

async function until(done: () => Promise<boolean>): Promise<void> {
  while (!(await done())) await new Promise((resolve) => setTimeout(resolve, 5))
}

async function countOf(sql: string): Promise<number> {
  const [row] = await postgres.transaction((tx) => tx.execute<{ count: string }>('test', sql))
  return Number(row?.count)
}

const rowsOfInbox = () => countOf('SELECT count(*) FROM feed_inbox')
/** Who waits for the wallets. */
const waiting = () => countOf("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'wallets'::regclass::oid")
