/** What only a real Postgres can show: its constraints, its locks, its connections. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { appendValues } from '../../src/journal/append-values.js'
import { cutRuns, type Filed, PostgresJournal, type Run } from '../../src/journal/index.js'
import { type Entry, MAX_AMOUNT } from '../../src/machine/index.js'
import { Postgres, type Transaction } from '../../src/postgres/index.js'
import { append, load, newWallet, raise, run, verdictsOf, type Writer } from './journals.js'

/** Whoever waits for a lock waits until a test lets the other go on: one that is given up is another matter. */
const PATIENT = { lockTimeoutMs: 30_000, statementTimeoutMs: 30_000, idleInTransactionTimeoutMs: 30_000 }
const HASTY = { ...PATIENT, lockTimeoutMs: 100 }

let url: string
let postgres: Postgres
let journal: PostgresJournal

beforeAll(async () => {
  url = await freshDatabase()
  postgres = new Postgres(url, PATIENT)
  journal = new PostgresJournal(postgres, () => 1)
})
afterAll(() => postgres.close())

async function ask<Row extends Record<string, unknown>>(sql: string): Promise<Row[]> {
  return postgres.transaction((tx) => tx.execute<Row>('test', sql))
}

/** Resolves once a statement with these words waits for a lock. */
async function lockWaiter(words: string): Promise<void> {
  const sql = `SELECT FROM pg_stat_activity
               WHERE wait_event_type = 'Lock' AND datname = current_database() AND query LIKE '% ${words}%'`
  await vi.waitFor(async () => expect(await ask(sql)).toHaveLength(1), { timeout: 20_000 })
}

test('that it can be written is shown by a write: by one at a time, and not where one may only read', async () => {
  expect(await journal.proveWrites()).toBe(true)
  await postgres.transaction(async (tx) => {
    expect(await tx.query('proveWrites', [])).toEqual([{ written: true }])
    expect(await journal.proveWrites()).toBe(false)
  })
  await postgres.transaction(async (tx) => {
    await tx.execute('only_read', 'SET TRANSACTION READ ONLY')
    expect(await tx.query('proveWrites', [])).toEqual([{ written: false }])
  })
  expect(await journal.proveWrites()).toBe(true)
})

test('entries are never changed or deleted, through the table or its parts', async () => {
  const wallet = await newWallet(journal)
  await append(journal, wallet.file(wallet.credit('a')))
  const [row] = await ask<{ part: string }>(
    `SELECT tableoid::regclass::text AS part FROM entries WHERE wallet = '${wallet.ref}'`,
  )
  for (const table of ['entries', row?.part]) {
    await expect(run(postgres, `UPDATE ${table} SET amount = 1`)).rejects.toThrow('P0001')
    await expect(run(postgres, `DELETE FROM ${table}`)).rejects.toThrow('P0001')
    await expect(run(postgres, `TRUNCATE ${table}`)).rejects.toThrow('P0001')
  }
  expect(await journal.entries(wallet.ref, 1, 10)).toHaveLength(1)
})

test('the books of every tenant and currency sum to zero, also past 2^53', async () => {
  const filed: Filed[] = []
  for (const [tenant, currency] of [
    ['one', 'EUR'],
    ['one', 'USD'],
    ['two', 'EUR'],
  ] as const) {
    for (let n = 0; n < 3; n += 1) {
      const wallet = await newWallet(journal, `books-${tenant}`, currency)
      const entries = [wallet.credit('a', MAX_AMOUNT), wallet.hold('h', 1_000)]
      entries.push(wallet.make({ kind: 'capture', key: 'k', hold: 'h', amount: 400, counter: 'fees' }))
      entries.push(wallet.make({ kind: 'settle', key: 's', hold: 'h', amount: 300 }))
      entries.push(
        wallet.make({ kind: 'debit', key: 'd', amount: MAX_AMOUNT - 1_000 }),
        wallet.credit('b', MAX_AMOUNT - 1_000),
      )
      filed.push(...wallet.file(...entries))
    }
  }
  expect(new Set(await verdictsOf(journal, filed))).toEqual(new Set(['appended']))
  const sums = await ask(
    "SELECT tenant, currency, sum(balance)::text AS sum FROM books WHERE tenant LIKE 'books-%' GROUP BY 1, 2 ORDER BY 1, 2",
  )
  expect(sums).toEqual([
    { tenant: 'books-one', currency: 'EUR', sum: '0' },
    { tenant: 'books-one', currency: 'USD', sum: '0' },
    { tenant: 'books-two', currency: 'EUR', sum: '0' },
  ])
  const accounts = await ask("SELECT account, balance::text FROM books WHERE tenant = 'books-two' ORDER BY account")
  const three = (amount: bigint) => String(amount * 3n)
  expect(accounts).toEqual([
    { account: 'fees', balance: '1200' },
    { account: 'funding', balance: three(-2n * BigInt(MAX_AMOUNT) + 1_000n) },
    { account: 'revenue', balance: three(BigInt(MAX_AMOUNT) - 1_100n) },
    { account: 'wallets', balance: three(BigInt(MAX_AMOUNT) - 300n) },
  ])
})

test('data that Postgres can not take is bad for its entry alone, and for what rests on it', async () => {
  const wallets = await Promise.all(Array.from({ length: 4 }, () => newWallet(journal)))
  const [one, two, three, four] = wallets as [Writer, Writer, Writer, Writer]
  const filed = [
    ...one.file(one.credit('a')),
    ...two.file(two.credit('a'), { ...two.credit('b'), at: 1.5 }, two.credit('c')),
    ...three.file({ ...three.credit('a'), kind: 'theft' as 'credit' }),
    ...four.file(four.credit('a')),
  ]
  expect(await verdictsOf(journal, filed)).toEqual(['appended', 'appended', 'bad', 'stale', 'bad', 'appended'])
  expect((await journal.append(two.file({ ...two.credit('d'), at: Number.NaN }))).verdicts).toEqual([{ type: 'bad' }])
})

test('numbers that are none are bad, one after the other, and cost no other wallet its entry', async () => {
  const wallets = await Promise.all(Array.from({ length: 3 }, () => newWallet(journal)))
  wallets.sort((a, b) => (a.ref < b.ref ? -1 : 1))
  const [broken, second, third] = wallets as [Writer, Writer, Writer]
  const damaged = ['a', 'b', 'c'].map((key) => ({ ...broken.credit(key), available: Number.NaN }))
  const filed = [...broken.file(...damaged), ...second.file(second.credit('a')), ...third.file(third.credit('a'))]
  expect(await verdictsOf(journal, filed)).toEqual(['bad', 'stale', 'stale', 'appended', 'appended'])
})

test('an entry that stands where none should be is bad for its wallet alone', async () => {
  const [broken, fine] = [await newWallet(journal), await newWallet(journal)]
  await append(journal, broken.file(broken.credit('a')))
  // As after a careless repair by hand: the row forgot its entry.
  await run(postgres, `UPDATE wallets SET seq = 0, head = genesis, available = 0 WHERE ref = '${broken.ref}'`)
  const again = await load(journal, broken.ref)
  expect(await verdictsOf(journal, [...again.file(again.credit('b')), ...fine.file(fine.credit('a'))])).toEqual([
    'bad',
    'appended',
  ])
})

test('of the last entries that a wallet is loaded with, those behind one that somebody damaged are left', async () => {
  const wallet = await newWallet(journal)
  const made = Array.from({ length: 20 }, (_, n) => wallet.credit(`c${n}`))
  await append(journal, wallet.file(...made))
  const harm = (sql: string) => run(postgres, `SET LOCAL session_replication_role = replica; ${sql}`)
  const seqs = async () => (await raise(journal, wallet.ref, { memory: true }))?.recent.map(({ seq }) => seq)
  const upTo20 = (from: number) => Array.from({ length: 21 - from }, (_, n) => from + n)
  const own = `wallet = '${wallet.ref}' AND seq`
  expect(await seqs()).toEqual(upTo20(5))
  await harm(`UPDATE entries SET amount = amount + 1 WHERE ${own} = 8`)
  expect(await seqs()).toEqual(upTo20(9))
  await harm(`UPDATE entries SET hash = '\\x00' WHERE ${own} = 12`)
  expect(await seqs()).toEqual(upTo20(14))
  await harm(`DELETE FROM entries WHERE ${own} = 17`)
  expect(await seqs()).toEqual(upTo20(19))
  await harm(`DELETE FROM entries WHERE ${own} = 20`)
  expect(await seqs()).toEqual([])
})

test('several processes append overlapping runs of the same wallets: gapless, each entry once', async () => {
  const wallets = await Promise.all(Array.from({ length: 6 }, () => newWallet(journal)))
  const planned = wallets.map((wallet) => Array.from({ length: 40 }, (_, n) => wallet.credit(`k${n}`)))
  const processes = await Promise.all(
    Array.from({ length: 5 }, async (_, n) => {
      const own = new Postgres(url, PATIENT)
      const mine = new PostgresJournal(own)
      const verdicts: string[] = []
      for (let from = 0; from < 40; ) {
        // Each at a pace of its own, all of them from what they believe to be missing.
        const filed = wallets.flatMap((wallet, w) => wallet.file(...(planned[w] ?? []).slice(from, from + 3 + n)))
        const types = await verdictsOf(mine, filed)
        verdicts.push(...types)
        expect(types.filter((type) => !['appended', 'there', 'gap'].includes(type))).toEqual([])
        if (!types.includes('gap')) from += 2 + n
      }
      await own.close()
      return verdicts
    }),
  )
  for (const [w, wallet] of wallets.entries()) {
    const entries = await journal.entries(wallet.ref, 1, 100)
    expect(entries.map(({ hash }) => hash)).toEqual(planned[w]?.map(({ hash }) => hash))
  }
  const appended = processes.flat().filter((type) => type === 'appended')
  expect(appended).toHaveLength(6 * 40)
})

test('several processes want the same place: one gets it, and the others hear that it is taken', async () => {
  const wallet = await newWallet(journal)
  const owns = Array.from({ length: 6 }, () => new Postgres(url, PATIENT))
  let entries = 0
  for (let round = 0; round < 10; round += 1) {
    const base = wallet.fork()
    const forks = owns.map((own, n) => {
      const fork = base.fork()
      return { own: new PostgresJournal(own), fork, entry: fork.credit(`${round}-${n}`) }
    })
    const verdicts = await Promise.all(forks.map(({ own, fork, entry }) => verdictsOf(own, fork.file(entry))))
    expect(verdicts.flat().sort()).toEqual(['appended', ...new Array(5).fill('stale')])
    wallet.state = forks[verdicts.findIndex(([type]) => type === 'appended')]?.fork.state as Writer['state']
    entries += 1
    expect((await journal.read([wallet.ref]))[0]).toMatchObject({ seq: entries, head: wallet.state.head })
  }
  await Promise.all(owns.map((own) => own.close()))
})

test('raises and appends that race: what got in before the raise is in the state it gives, the rest never gets in', async () => {
  const wallet = await newWallet(journal)
  const other = new Postgres(url, PATIENT)
  let current = wallet
  for (let round = 0; round < 20; round += 1) {
    const before = current.state.seq
    const entry = current.credit(`r${round}`)
    const [verdicts, raised] = await Promise.all([
      verdictsOf(journal, current.file(entry)),
      load(new PostgresJournal(other), wallet.ref),
    ])
    expect([...verdicts, raised.state.seq]).toEqual(
      raised.state.seq > before ? ['appended', before + 1] : ['epoch', before],
    )
    current = raised
  }
  await other.close()
})

test('open holds are noted again only after four entries a hold: ten thousand of them cost no more an entry than ten', async () => {
  const wallet = await newWallet(journal)
  const funds = wallet.credit('in', 100)
  const holds = Array.from({ length: 10 }, (_, n) => wallet.hold(`h${n}`, 1))
  await append(journal, wallet.file(funds, ...holds))
  const noted = async () => {
    await journal.checkpoint(wallet.ref)
    return ask(`SELECT seq, open, jsonb_array_length(holds) AS holds FROM checkpoints WHERE wallet = '${wallet.ref}'`)
  }
  expect(await noted()).toEqual([{ seq: '11', open: 10, holds: 10 }])
  const credits = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, n) => wallet.credit(`c${from + n}`, 1))
  await append(journal, wallet.file(...credits(0, 39)))
  expect(await noted()).toMatchObject([{ seq: '11' }])
  await append(journal, wallet.file(...credits(39, 40)))
  expect(await noted()).toEqual([{ seq: '51', open: 10, holds: 10 }])
})

test('raising many waits for nobody: who is locked is named, and raised alone', async () => {
  const [locked, free] = [await newWallet(journal), await newWallet(journal)]
  const hasty = new Postgres(url, HASTY)
  const asked = [locked, free].map(({ ref }) => ({ ref, epochMin: 0, memory: false, known: null }))
  await postgres.transaction(async (tx) => {
    await tx.execute('lock', `SELECT FROM wallets WHERE ref = '${locked.ref}' FOR UPDATE`)
    const [first, second] = await journal.raise(asked)
    expect(first).toBe('locked')
    expect(second).toMatchObject({ state: { epoch: free.state.epoch + 1 } })
    await expect(new PostgresJournal(hasty).raise(asked.slice(0, 1))).rejects.toMatchObject({ outcome: 'retry' })
  })
  await hasty.close()
  expect(await journal.raise(asked.slice(0, 1))).toMatchObject([{ state: { epoch: locked.state.epoch + 1 } }])
})

test('raising many, one of which takes too long: each is raised alone, and the others need not fail with it', async () => {
  const [slow, quick] = [await newWallet(journal), await newWallet(journal)]
  await append(journal, slow.file(slow.credit('a'), slow.hold('h')))
  const hurried = new Postgres(url, { ...PATIENT, statementTimeoutMs: 200 })
  const mine = new PostgresJournal(hurried, () => 1)
  const asked = [slow, quick].map(({ ref }) => ({ ref, epochMin: 0, memory: false, known: null }))
  await postgres.transaction(async (tx) => {
    // A lock stands for many entries: only who has open holds reads this.
    await tx.execute('lock', 'LOCK TABLE checkpoints IN ACCESS EXCLUSIVE MODE')
    expect(await mine.raise(asked)).toEqual(['locked', 'locked'])
    expect(await mine.raise(asked.slice(1))).toMatchObject([{ state: { epoch: quick.state.epoch + 1 } }])
    await expect(mine.raise(asked.slice(0, 1))).rejects.toMatchObject({ sqlstate: '57014' })
  })
  await hurried.close()
})

test('taking over waits for a row for a moment only where it is patient, and reads open holds as long as it takes only then', async () => {
  const [locked, slow] = [await newWallet(journal), await newWallet(journal)]
  await append(journal, slow.file(slow.credit('a'), slow.hold('h')))
  const { epoch } = slow.state
  await postgres.transaction(async (tx) => {
    await tx.execute('lock', `SELECT FROM wallets WHERE ref = '${locked.ref}' FOR UPDATE`)
    expect(await journal.takeOver(locked.ref)).toBe('locked')
    // Longer than a moment would be waiting to the end of the test.
    expect(await journal.takeOver(locked.ref, { patient: true })).toBe('locked')
    await tx.execute('lock', 'LOCK TABLE checkpoints IN ACCESS EXCLUSIVE MODE')
    expect(await journal.takeOver(slow.ref)).toBe('slow')
  })
  expect(await journal.read([slow.ref])).toMatchObject([{ epoch, owner: 'redis' }])
  expect(await journal.takeOver(slow.ref, { patient: true })).toMatchObject({
    state: { epoch: epoch + 1, reserved: 1 },
  })
})

test('open holds are noted however long that takes', async () => {
  const wallet = await newWallet(journal)
  await append(journal, wallet.file(wallet.credit('a'), wallet.hold('h')))
  const hurried = new Postgres(url, { ...PATIENT, statementTimeoutMs: 200 })
  let noting: Promise<void> | undefined
  await postgres.transaction(async (tx) => {
    await tx.execute('lock', 'LOCK TABLE checkpoints IN ACCESS EXCLUSIVE MODE')
    noting = new PostgresJournal(hurried).checkpoint(wallet.ref)
    noting.catch(() => {})
    const sql = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%INSERT INTO checkpoints%'
                 AND clock_timestamp() - query_start > '400 ms'`
    await vi.waitFor(async () => expect(await ask(sql)).toHaveLength(1), { timeout: 20_000 })
  })
  await noting
  expect(await ask(`SELECT open FROM checkpoints WHERE wallet = '${wallet.ref}'`)).toEqual([{ open: 1 }])
  await hurried.close()
})

test('an epoch goes up by chance, and by one where its timeline comes to an end', async () => {
  const { ref, state } = await newWallet(journal)
  const raised = async (by: PostgresJournal, epochMin = 0) =>
    (await raise(by, ref, { epochMin }))?.state.epoch as number
  const epochs = [state.epoch]
  for (let n = 0; n < 20; n += 1) epochs.push(await raised(new PostgresJournal(postgres)))
  const steps = epochs.slice(1).map((epoch, n) => epoch - (epochs[n] as number))
  expect(new Set(steps).size).toBeGreaterThan(15)
  for (const step of steps) expect(step > 0 && step <= 10_000_000).toBe(true)

  const far = new PostgresJournal(postgres, () => 1_000)
  expect(await raised(far, 1_900_000_000_000)).toBe(1_900_000_000_999)
  expect(await raised(far)).toBe(1_900_000_001_000)
})

test('a row that somebody keeps locked is waited for once, and holds up nobody else', async () => {
  const [locked, free] = [await newWallet(journal), await newWallet(journal)]
  const holder = new Postgres(url, PATIENT)
  const statements: string[] = []
  const observe = (_: string, __: number, { query = '' }: Record<string, string> = {}) => {
    // That comes by the clock.
    if (query !== 'renewPlans') statements.push(query)
  }
  const watched = new Postgres(url, { ...HASTY, telemetry: { observe } })
  const lock = `SELECT FROM wallets WHERE ref = '${locked.ref}' FOR UPDATE`
  const filed = [...locked.file(locked.credit('a')), ...free.file(free.credit('a'))]
  await holder.transaction(async (tx: Transaction) => {
    await tx.execute('lock', lock)
    const patient = new PostgresJournal(watched)
    const waits = { type: 'gap', seq: 0, locked: true }
    expect(await append(patient, filed)).toEqual([waits, { type: 'appended' }])
    expect(statements.splice(0)).toEqual(['append', 'append', 'inspectRefused'])
    // Nobody waits for it a second time, whether in company or alone.
    expect(await append(patient, [...filed, ...free.file(free.credit('b'))])).toEqual([
      waits,
      { type: 'there' },
      { type: 'appended' },
    ])
    expect(await append(patient, filed.slice(0, 1))).toEqual([waits])
    expect(statements.splice(0)).toEqual(['append', 'inspectRefused', 'append', 'inspectRefused'])
    // Who does not meet it goes the usual way.
    expect(await append(patient, free.file(free.credit('c')))).toEqual([{ type: 'appended' }])
    expect(statements.splice(0)).toEqual(['appendOne'])
  })
  expect(await verdictsOf(journal, filed)).toEqual(['appended', 'there'])

  const alone = locked.file(locked.credit('b'))
  const hasty = new PostgresJournal(watched)
  await holder.transaction(async (tx: Transaction) => {
    await tx.execute('lock', lock)
    expect(await append(hasty, alone)).toEqual([{ type: 'gap', seq: 1, locked: true }])
  })
  expect(statements.splice(0)).toEqual(['appendOne', 'append', 'inspectRefused'])
  expect(await append(hasty, alone)).toEqual([{ type: 'appended' }])
  expect(await append(hasty, locked.file(locked.credit('c')))).toEqual([{ type: 'appended' }])
  expect(statements).toEqual(['append', 'appendOne'])
  await holder.close()
  await watched.close()
})

test('a deadlock is tried again', async () => {
  // Sorted by ref: the append takes the first, then waits for the second; the other way round makes a circle.
  const [first, second] = [await newWallet(journal), await newWallet(journal)].sort((a, b) =>
    a.ref < b.ref ? -1 : 1,
  ) as [Writer, Writer]
  const [holder, patient, other] = [new Postgres(url, PATIENT), new Postgres(url, PATIENT), new Postgres(url, PATIENT)]
  const filed = [...first.file(first.credit('a')), ...second.file(second.credit('a'))]
  const lock = ({ ref }: Writer, who: string) => `SELECT /* ${who} */ FROM wallets WHERE ref = '${ref}' FOR UPDATE`
  let appending: Promise<string[]> | undefined
  let locking: Promise<void> | undefined
  // Both wait for the first row, the append before the other: it has that before it asks for the second, and so closes the circle.
  await holder.transaction(async (tx) => {
    await tx.execute('lock', lock(first, 'holder'))
    appending = verdictsOf(new PostgresJournal(patient), filed)
    await lockWaiter('append($1')
    locking = other.transaction(async (tx) => {
      // The append is the one who finds the circle, since it waits the shorter time.
      await tx.execute('patience', "SET LOCAL deadlock_timeout = '60s'")
      await tx.execute('lock', lock(second, 'other'))
      await tx.execute('lock', lock(first, 'other'))
    })
    await lockWaiter('other')
  })
  await locking
  expect(await appending).toEqual(['appended', 'appended'])
  for (const one of [holder, patient, other]) await one.close()
})

test('a deadline that passes while an append waits for its row counts, if the row was taken over meanwhile', async () => {
  const wallet = await newWallet(journal)
  const taken = await journal.takeOver(wallet.ref)
  if (!taken || typeof taken === 'string') throw new Error('not taken over')
  wallet.state = taken.state
  const [other, patient] = [new Postgres(url, PATIENT), new Postgres(url, PATIENT)]
  const deadline = Date.now() + 300
  let appending: Promise<string[]> | undefined
  await other.transaction(async (tx) => {
    await tx.query('takeOver', [wallet.ref, false, false, 1, null])
    appending = verdictsOf(new PostgresJournal(patient), [{ ref: wallet.ref, entry: wallet.credit('a'), deadline }])
    await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(deadline + 20), { timeout: 20_000, interval: 20 })
  })
  expect(await appending).toEqual(['late'])
  await other.close()
  await patient.close()
})

test('an append that waited for another process goes on behind what that one appended of the same run', async () => {
  const wallet = await newWallet(journal)
  const filed = ['a', 'b', 'c', 'd'].flatMap((key) => wallet.file(wallet.credit(key)))
  const [first, second] = [new Postgres(url, PATIENT), new Postgres(url, PATIENT)]
  const [before] = cutRuns(filed.slice(0, 2)).runs
  let appending: Promise<string[]> | undefined
  const statements = vi.spyOn(second, 'query')
  await first.transaction(async (tx) => {
    expect(await tx.query('append', [...(appendValues([before as Run]) ?? []), false])).toMatchObject([
      { refused: null },
    ])
    appending = verdictsOf(new PostgresJournal(second), filed)
    await lockWaiter('append($1')
  })
  expect(await appending).toEqual(['there', 'there', 'appended', 'appended'])
  expect(await verdictsOf(new PostgresJournal(second), filed.slice(1, 3))).toEqual(['there', 'there'])
  // Without a second look: one statement each.
  expect(statements.mock.calls.map(([name]) => name)).toEqual(['append', 'append'])
  await first.close()
  await second.close()
})

test('what only looks like a run that the row stands inside of is refused', async () => {
  const wallet = await newWallet(journal)
  const filed = ['a', 'b', 'c'].flatMap((key) => wallet.file(wallet.credit(key)))
  expect(await verdictsOf(journal, filed.slice(0, 2))).toEqual(['appended', 'appended'])
  const [, { entry: second }] = filed as [Filed, Filed, Filed]
  for (const other of [{ hash: 'f'.repeat(40) }, { available: second.available + 1 }, { reserved: 1 }]) {
    // The links between them are as they should be; what differs is what the row says.
    const forged = { ...second, ...other }
    const entries = [filed[0]?.entry as Entry, forged, { ...(filed[2]?.entry as Entry), prev: forged.hash }]
    const run: Run = { ref: wallet.ref, entries, deadlines: [0, 0, 0], places: [0, 1, 2] }
    const [row] = await postgres.query<{ refused: number[] | null }>('append', [...(appendValues([run]) ?? []), false])
    expect(row?.refused, JSON.stringify(other)).toEqual([1])
  }
})

test('a refusal of the Postgres path waits for the append that may prove it wrong', async () => {
  const wallet = await newWallet(journal)
  const taken = await journal.takeOver(wallet.ref)
  if (!taken || typeof taken === 'string') throw new Error('not taken over')
  wallet.state = taken.state
  const { epoch, seq, head } = taken.state
  const [writer, reader, hasty] = [PATIENT, PATIENT, HASTY].map((options) => new Postgres(url, options)) as [
    Postgres,
    Postgres,
    Postgres,
  ]
  const refusal = { ref: wallet.ref, epoch, seq, head, key: 'a', hold: '' }
  const [run] = cutRuns(wallet.file(wallet.credit('a'))).runs
  let confirming: ReturnType<PostgresJournal['confirm']> | undefined
  await writer.transaction(async (tx) => {
    expect(await tx.query('append', [...(appendValues([run as Run]) ?? []), false])).toMatchObject([{ refused: null }])
    expect(await new PostgresJournal(hasty).confirm([refusal])).toEqual(['locked'])
    confirming = new PostgresJournal(reader).confirm([refusal])
    await lockWaiter('confirm($1')
  })
  expect(await confirming).toEqual([{ stands: true, epoch, owner: null, seen: true, hold: 'unknown' }])
  for (const one of [writer, reader, hasty]) await one.close()
})
