import { createHash } from 'node:crypto'
import { Cluster, Redis } from 'ioredis'
import pg from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import { emptyDatabase, freshDatabase, freshRedis, sharedCluster } from '../../../test/servers.js'
import { complaintsIn, holdfast, run } from './support/holdfast.js'

const idOf = (name: string) => createHash('sha256').update(name).digest('hex')
const [ANN, BOB, ODD, BAD] = ['ann', 'bob', 'odd', 'bad'].map(idOf) as [string, string, string, string]
const AT = '2024-01-15T10:30:00.123Z'

const closing: (() => unknown)[] = []
afterAll(async () => {
  for (const close of closing) await close()
})

async function fillClient(redis: Redis | Cluster, clientId: string, balance: string): Promise<void> {
  const fields = { clientId, stripeCustomerId: 'cus_1', balance, currency: 'usd', createdAt: AT, updatedAt: AT }
  await redis.hset(`stripe402:client:${clientId}`, fields)
}

/** What stripe402 writes, by plain commands: Ann and Bob are as they should be. */
async function fillRedis(redis: Redis, odd: boolean): Promise<void> {
  const client = (clientId: string, balance: string) => fillClient(redis, clientId, balance)
  const transaction = async (clientId: string, id: string, type: string, amount: number) => {
    const record = { id, clientId, type, amount, createdAt: AT }
    await redis.set(`stripe402:txn:${clientId}:${id}`, JSON.stringify(record))
    await redis.zadd(`stripe402:txns:${clientId}`, Date.parse(AT), id)
  }
  await client(ANN, '49300')
  await transaction(ANN, 't1', 'topup', 50_000)
  await transaction(ANN, 't2', 'deduction', 700)
  await client(BOB, '0')
  if (!odd) return
  await client(ODD, '500')
  await transaction(ODD, 't1', 'deduction', 100)
  await client(BAD, '10.5')
}

async function redisSource(odd = false): Promise<string> {
  const url = await freshRedis()
  const redis = new Redis(url)
  await fillRedis(redis, odd)
  redis.disconnect()
  return url
}

async function postgresSource(): Promise<string> {
  const url = await emptyDatabase()
  const pool = new pg.Pool({ connectionString: url })
  await pool.query(`
    CREATE TABLE stripe402_clients (client_id text PRIMARY KEY, stripe_customer_id text NOT NULL, balance integer NOT NULL DEFAULT 0,
      currency text NOT NULL DEFAULT 'usd', created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now());
    CREATE TABLE stripe402_transactions (id text PRIMARY KEY, client_id text NOT NULL REFERENCES stripe402_clients (client_id),
      type text NOT NULL, amount integer NOT NULL, stripe_payment_intent_id text, resource text, created_at timestamptz NOT NULL DEFAULT now());
    INSERT INTO stripe402_clients VALUES ('${ANN}', 'cus_1', 49300, 'usd', '${AT}', '${AT}'), ('${BOB}', 'cus_2', 0, 'usd', '${AT}', '${AT}');
    INSERT INTO stripe402_transactions VALUES ('t1', '${ANN}', 'topup', 50000, 'pi_1', NULL, '${AT}'), ('t2', '${ANN}', 'deduction', 700, NULL, '/a', '${AT}')`)
  await pool.end()
  return url
}

const target = async () => ({ REDIS_URL: await freshRedis(), DATABASE_URL: await freshDatabase() })

async function balanceOf(databaseUrl: string, walletId: string, tenant = 'default'): Promise<string | undefined> {
  const pool = new pg.Pool({ connectionString: databaseUrl })
  const { rows } = await pool.query<{ available: string }>(
    'SELECT available FROM holdfast.wallets WHERE id = $1 AND tenant = $2',
    [walletId, tenant],
  )
  await pool.end()
  return rows[0]?.available
}

describe('holdfast stripe402 import', () => {
  it.each([
    ['Redis', async () => ({ STRIPE402_REDIS_URL: await redisSource() })],
    ['Postgres', async () => ({ STRIPE402_DATABASE_URL: await postgresSource() })],
  ])(
    'takes clients and transactions from %s into wallets, and again changes nothing',
    async (_, source) => {
      const env = { ...(await target()), ...(await source()) }
      const dry = await run(['stripe402', 'import', '--dry-run'], { env })
      expect([dry.code, complaintsIn(dry.stderr)]).toEqual([0, ''])
      expect(dry.stdout).toBe(
        '2 clients: 2 can be imported, 0 were imported before, 0 left out. 2 transactions.\nNothing was changed.\n',
      )
      expect(await balanceOf(env.DATABASE_URL, `stripe402:${ANN}`)).toBeUndefined()
      const first = await run(['stripe402', 'import'], { env })
      expect([first.code, complaintsIn(first.stderr)]).toEqual([0, ''])
      expect(first.stdout).toBe(
        '2 clients: 2 imported, 0 were imported before, 0 left out. 2 transactions.\n' +
          'Compared at the end: 49,300 in the store, 49,300 in wallets.\n',
      )
      expect(await balanceOf(env.DATABASE_URL, `stripe402:${ANN}`)).toBe('49300')
      const again = await run(['stripe402', 'import', '--json'], { env })
      expect(again.code).toBe(0)
      expect(JSON.parse(again.stdout)).toEqual({
        dryRun: false,
        clients: 2,
        imported: 0,
        before: 2,
        leftOut: 0,
        transactions: 2,
        adjusted: 0,
        adjustedAbove: '0',
        adjustedBelow: '0',
        balances: { store: '49300', wallets: '49300' },
        counts: { damaged: 0, unequal: 0, exists: 0, changed: 0, differs: 0 },
        findings: [],
      })
    },
    90_000,
  )

  it('makes up for what does not add up, leaves out what can not be read, tells both and ends with 1', async () => {
    const env = await target()
    const source = await redisSource(true)
    const { code, stdout, stderr } = await run(['stripe402', 'import', '--from-redis', source], { env })
    expect([code, complaintsIn(stderr)]).toEqual([1, ''])
    expect(stdout).toMatch(/^damaged +\w{8}… +balance: expected .*, got a fraction$/m)
    expect(stdout).toMatch(/^unequal +\w{8}… +the balance is 600 above what its transactions come to$/m)
    expect(stdout).toContain('4 clients: 3 imported, 0 were imported before, 1 left out. 3 transactions.')
    expect(stdout).toContain('Transactions of 1 client do not come to the balance: 600 are missing, 0 too many')
    expect(stdout).toContain('Compared at the end: 49,800 in the store, 49,800 in wallets.')
    for (const id of [ANN, BOB, ODD, BAD]) expect(stdout + stderr).not.toContain(id)
    expect(await balanceOf(env.DATABASE_URL, `stripe402:${ODD}`)).toBe('500')
    expect(await balanceOf(env.DATABASE_URL, `stripe402:${BAD}`)).toBeUndefined()
  })

  it('imports for a tenant, under a prefix', async () => {
    const env = { ...(await target()), STRIPE402_REDIS_URL: await redisSource() }
    const { code } = await run(['stripe402', 'import', '--tenant', 'shop', '--wallet-prefix', 'card:'], { env })
    expect(code).toBe(0)
    expect(await balanceOf(env.DATABASE_URL, `card:${ANN}`, 'shop')).toBe('49300')
    expect(await balanceOf(env.DATABASE_URL, `card:${ANN}`)).toBeUndefined()
  })

  it('that is killed and started again brings everything once', async () => {
    const url = await freshRedis()
    const redis = new Redis(url)
    closing.push(() => redis.disconnect())
    const clients = Array.from({ length: 300 }, (_, n) => idOf(`many-${n}`))
    for (const clientId of clients) {
      const write = redis.pipeline()
      const fields = { clientId, stripeCustomerId: 'cus', balance: '60', currency: 'usd', createdAt: AT, updatedAt: AT }
      write.hset(`stripe402:client:${clientId}`, fields)
      for (let n = 0; n < 5; n += 1) {
        const record = {
          id: `t${n}`,
          clientId,
          type: n === 0 ? 'topup' : 'deduction',
          amount: n === 0 ? 100 : 10,
          createdAt: AT,
        }
        write.set(`stripe402:txn:${clientId}:t${n}`, JSON.stringify(record))
        write.zadd(`stripe402:txns:${clientId}`, Date.parse(AT) + n, `t${n}`)
      }
      await write.exec()
    }
    const env = { ...(await target()), STRIPE402_REDIS_URL: url }
    const pool = new pg.Pool({ connectionString: env.DATABASE_URL })
    closing.push(() => pool.end())
    const count = async (table: string) =>
      Number((await pool.query(`SELECT count(*) AS n FROM holdfast.${table}`)).rows[0].n)
    // Nobody gets past the gate: however late it is killed, it is killed in the middle.
    await pool.query(`
      CREATE TABLE public.gate (entries integer); INSERT INTO public.gate VALUES (0);
      CREATE FUNCTION public.wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        WHILE (SELECT count(*) FROM holdfast.entries) >= (SELECT entries FROM public.gate) LOOP PERFORM pg_sleep(0.02); END LOOP;
        RETURN NULL; END $$;
      CREATE TRIGGER gate BEFORE INSERT ON holdfast.entries FOR EACH STATEMENT EXECUTE FUNCTION public.wait_at_gate()`)
    for (const least of [100, 600]) {
      await pool.query('UPDATE public.gate SET entries = $1', [least])
      const killed = await holdfast(['stripe402', 'import'], { env })
      while ((await count('entries')) < least) await new Promise((resolve) => setTimeout(resolve, 5))
      killed.signal('SIGKILL')
      await killed.ended
      expect(await count('entries')).toBeLessThan(1_500)
    }
    await pool.query('UPDATE public.gate SET entries = 1000000')
    const { code, stdout } = await run(['stripe402', 'import', '--json'], { env })
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      clients: 300,
      leftOut: 0,
      transactions: 1_500,
      balances: { store: '18000', wallets: '18000' },
    })
    expect([await count('wallets'), await count('entries')]).toEqual([300, 1_500])
  })

  it('reads a Cluster', async () => {
    const addresses = await sharedCluster()
    const cluster = new Cluster(addresses)
    closing.push(() => cluster.disconnect())
    const clientId = idOf(`cluster-${process.pid}-${Date.now()}`)
    await fillClient(cluster, clientId, '60')
    const env = {
      ...(await target()),
      STRIPE402_REDIS_URL: `redis+cluster://${addresses.map(({ host, port }) => `${host}:${port}`).join(',')}`,
    }
    // Others have left clients there too, and may be at them.
    await run(['stripe402', 'import'], { env })
    expect(await balanceOf(env.DATABASE_URL, `stripe402:${clientId}`)).toBe('60')
  })
})

describe('holdfast stripe402 verify', () => {
  it('ends with 0 where every balance is what its transactions come to', async () => {
    const STRIPE402_DATABASE_URL = await postgresSource()
    const { code, stdout, stderr } = await run(['stripe402', 'verify'], { env: { STRIPE402_DATABASE_URL } })
    expect([code, complaintsIn(stderr)]).toEqual([0, ''])
    expect(stdout).toBe(
      '2 clients with 2 transactions: 50,000 in, 700 out, 49,300 in balances.\n' +
        'Every balance is what its transactions come to.\n',
    )
  })

  it('reads keys behind a prefix, and tagged ones', async () => {
    const url = await freshRedis()
    const redis = new Redis(url, { keyPrefix: 'shop:' })
    await fillClient(redis, `{${ANN}}`, '0')
    await redis.hset(`stripe402:client:{${ANN}}`, { clientId: ANN })
    redis.disconnect()
    const verify = (...flags: string[]) => run(['stripe402', 'verify', '--json', '--from-redis', url, ...flags])
    const [right, plain] = await Promise.all([verify('--key-prefix', 'shop:', '--tagged'), verify()])
    expect(JSON.parse(right.stdout)).toMatchObject({ clients: 1 })
    expect(plain.stdout).not.toContain('"clients":1')
    const nowhere = await run(['stripe402', 'verify', '--from-postgres', 'postgres://127.0.0.1:1/x', '--tagged'])
    expect([nowhere.code, nowhere.stderr]).toEqual([2, expect.stringContaining('because --tagged is given')])
  })

  it('ends with 1 where one is not, and tells which', async () => {
    const source = await redisSource(true)
    const told = await run(['stripe402', 'verify', '--from-redis', source])
    expect(told.code).toBe(1)
    expect(told.stdout).toContain('Balances that are not what their transactions come to: 1.')
    expect(told.stdout).toContain("Clients that can't be read: 1.")
    for (const id of [ANN, ODD, BAD]) expect(told.stdout).not.toContain(id)
    const { code, stdout } = await run(['stripe402', 'verify', '--json', '--from-redis', source])
    expect(code).toBe(1)
    expect(JSON.parse(stdout)).toMatchObject({
      clients: 3,
      transactions: 3,
      balances: '49800',
      topups: '50000',
      deductions: '800',
      counts: { unequal: 1, damaged: 1 },
    })
  })
})

it('an id that would be a command to a terminal is shown as text', async () => {
  const url = await freshRedis()
  const redis = new Redis(url)
  await fillClient(redis, '\u001b[2Jx', 'much')
  // All that is wrong with this one is its name, and no store takes that.
  await fillClient(redis, '\u001b[2Jy', '5')
  await fillClient(redis, ANN, '0')
  redis.disconnect()
  const { code, stdout } = await run(['stripe402', 'verify', '--from-redis', url])
  expect(code).toBe(1)
  expect(stdout).toMatch(/^damaged +�\[2Jy +clientId: expected no control characters/m)
  expect(stdout).toContain('1 client with 0 transactions')
  expect(stdout).not.toContain('\u001b')
  expect(stdout).toContain('�[2Jx')
})

describe('what can not be done', () => {
  it.each([
    [['verify'], 'Expected --from-redis or --from-postgres, got neither'],
    [
      ['verify', '--from-redis', 'redis://h', '--from-postgres', 'postgres://h/d'],
      'got both: --from-redis and --from-postgres',
    ],
    [[], 'stripe402: expected one of import, verify behind it'],
    [['verify', '--from-redis', 'http://alice:hunter2@host'], '--from-redis: expected a URL such as redis://'],
    [['import', '--from-redis', 'redis://h'], 'REDIS_URL: expected a URL'],
    [['import', '--wallet-prefix', 'records:x'], '--wallet-prefix: expected 1 to 64 characters'],
  ])('%j ends with 2', async (args, message) => {
    const { code, stdout, stderr } = await run(['stripe402', ...args])
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(message)
    expect(stderr).not.toContain('hunter2')
  })

  it.each([
    ['--from-redis', 'redis://alice:hunter2@127.0.0.1:1', '--from-redis: Redis at 127.0.0.1:1'],
    ['--from-postgres', 'postgres://alice:hunter2@127.0.0.1:1/x', '--from-postgres: Postgres at 127.0.0.1:1'],
  ])('a store that is not there (%s) ends with 1', async (flag, url, message) => {
    const { code, stdout, stderr } = await run(['stripe402', 'verify', flag, url])
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toContain(message)
    expect(stderr).not.toMatch(/hunter2|alice|^\s+at /m)
  })

  it('a Redis without clients is told of: it may be the wrong one', async () => {
    const env = { ...(await target()), STRIPE402_REDIS_URL: await freshRedis() }
    for (const command of ['verify', 'import']) {
      const { code, stdout } = await run(['stripe402', command], { env })
      expect([code, stdout]).toEqual([0, expect.stringContaining('There are no clients of stripe402 here')])
    }
  })

  it('a database without the tables of stripe402 ends with 1, and stays without them', async () => {
    const url = await emptyDatabase()
    const { code, stderr } = await run(['stripe402', 'verify', '--from-postgres', url])
    expect([code, stderr]).toEqual([1, 'holdfast: --from-postgres: there are no tables of stripe402\n'])
    const pool = new pg.Pool({ connectionString: url })
    expect((await pool.query("SELECT to_regclass('stripe402_clients') AS found")).rows).toEqual([{ found: null }])
    await pool.end()
  })
})
