import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { describe, expect, it, vi } from 'vitest'
import { emptyDatabase, freshDatabase, freshRedis, sharedCluster, sharedSentinel } from '../../../test/servers.js'
import { main } from '../src/commands/main.js'
import { OPTIONS, type Option } from '../src/config/index.js'
import { holdfast, run } from './support/holdfast.js'

const NOWHERE = {
  REDIS_URL: 'redis://alice:hunter2@127.0.0.1:1/0',
  DATABASE_URL: 'postgres://alice:hunter2@127.0.0.1:1/ledger',
}

/** A message for people, on standard error, and nothing else. */
const expectMessage = ({ stdout, stderr }: { stdout: string; stderr: string }) => {
  expect(stdout).toBe('')
  const lines = stderr.split('\n').filter((line) => !line.startsWith('{'))
  for (const line of lines.slice(0, -1)) expect(line).toMatch(/^holdfast: /)
  expect(stderr).not.toMatch(/^\s+at /m)
  expect(stderr).not.toContain('hunter2')
  expect(stderr).not.toContain('alice')
}

describe('the command line', () => {
  it('tells every flag and variable of a command in its help', async () => {
    const all = await run(['--help'])
    expect([all.code, all.stderr]).toEqual([0, ''])
    const options = Object.values<Option<unknown>>(OPTIONS)
    const commands = [...new Set(options.flatMap(({ commands }) => commands))]
    expect(commands).toContain('wallet watch')
    for (const command of commands) {
      const words = command.split(' ')
      expect(all.stdout).toMatch(new RegExp(`^ +${words[0]} `, 'm'))
      let stdout = ''
      const say = (text: string): void => {
        stdout += text
      }
      // In this process: there are more than fifty of them.
      const terminal = { print: say, complain: say, progress: say, environment: {} }
      expect(await main([...words, '--help'], terminal)).toBe(0)
      const told = [...stdout.matchAll(/^ +--([\w-]+)/gm)].map(([, flag]) => flag)
      const flags = options.filter(({ commands, argument }) => commands.includes(command) && !argument)
      expect(told).toEqual(flags.map(({ flag }) => flag))
      for (const { variable, commands } of options) {
        if (variable && commands.includes(command)) expect(stdout.replaceAll(/\s+/g, ' ')).toContain(`env: ${variable}`)
      }
    }
  })

  it('tells its version', async () => {
    expect(await run(['--version'])).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) })
  })

  it('runs what is in the repository from a clone, and hands everything on', async () => {
    const { code, stdout } = await run(['sim', '--help'])
    expect(code).toBe(0)
    expect(stdout).toContain('--seeds')
    const wrong = await run(['bench', 'nothing'])
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringMatching(/^suite: expected .*, got nothing/)])
  })

  it.each([
    [[], 'no command given'],
    [['srve'], "unknown command 'srve'"],
    [['serve', '--prot', '1'], "unknown option '--prot'"],
    [['serve', '--port'], "option '--port <number>' argument missing"],
    [['serve', 'now'], "too many arguments for 'serve'"],
    [['migrate', '--port', '1'], "unknown option '--port'"],
  ])('refuses %j with exit code 2', async (args, message) => {
    const ended = await run(args)
    expect(ended.code).toBe(2)
    expectMessage(ended)
    expect(ended.stderr).toContain(message)
    expect(ended.stderr).toMatch(/See: holdfast .*--help/)
  })

  it('refuses a wrong configuration with exit code 2, all mistakes at once', async () => {
    const ended = await run(['serve', '--port', 'http'], { env: { REDIS_URL: 'http://alice:hunter2@host' } })
    expect(ended.code).toBe(2)
    expectMessage(ended)
    expect(ended.stderr).toMatch(/^holdfast: --port: expected a port from 0 to 65535, got "http"$/m)
    expect(ended.stderr).toMatch(/^holdfast: REDIS_URL: expected a URL such as .*, got something else$/m)
    expect(ended.stderr).toMatch(/^holdfast: DATABASE_URL: expected a URL such as .*, got nothing$/m)
  })
})

describe('a Redis or Postgres that is not there', () => {
  it('ends serve with exit code 1, naming the variable, host and port', async () => {
    const ended = await run(['serve'], { env: NOWHERE })
    expect(ended.code).toBe(1)
    expect(ended.durationMs).toBeLessThan(20_000)
    expectMessage(ended)
    expect(ended.stderr).toMatch(/^holdfast: REDIS_URL: Redis at 127\.0\.0\.1:1 .*ECONNREFUSED/m)
    expect(ended.stderr).toMatch(/^holdfast: DATABASE_URL: Postgres at 127\.0\.0\.1:1 .*ECONNREFUSED/m)
  })

  it('is named by the flag where it came by flag', async () => {
    const { stderr, code } = await run(['serve', '--redis-url', NOWHERE.REDIS_URL], {
      env: { DATABASE_URL: await freshDatabase() },
    })
    expect(code).toBe(1)
    expect(stderr).toMatch(/^holdfast: --redis-url: Redis at 127\.0\.0\.1:1 /m)
    expect(stderr).not.toContain('DATABASE_URL')
  })

  it('that accepts connections and says nothing ends serve as well, once it was waited for', async () => {
    const mute = createServer(() => {}).listen(0, '127.0.0.1')
    await once(mute, 'listening')
    const { port } = mute.address() as AddressInfo
    const ended = await run(['serve'], {
      env: { REDIS_URL: `redis://127.0.0.1:${port}`, DATABASE_URL: `postgres://127.0.0.1:${port}/x` },
    })
    mute.close()
    expect(ended.code).toBe(1)
    // Beside the nine seconds that it waits it has to be started, on whatever machine.
    expect(ended.durationMs).toBeLessThan(20_000)
    expectMessage(ended)
    expect(ended.stderr).toContain(`REDIS_URL: Redis at 127.0.0.1:${port}`)
    expect(ended.stderr).toContain(`DATABASE_URL: Postgres at 127.0.0.1:${port}`)
  })

  it('ends migrate the same way', async () => {
    const ended = await run(['migrate'], { env: NOWHERE })
    expect(ended.code).toBe(1)
    expectMessage(ended)
    expect(ended.stderr).toMatch(/^holdfast: DATABASE_URL: Postgres at 127\.0\.0\.1:1 /m)
  })
})

describe('migrate', () => {
  it('brings a database to this version, says what it did, and changes nothing the second time', async () => {
    const env = { DATABASE_URL: await emptyDatabase() }
    const first = await run(['migrate'], { env })
    expect([first.code, first.stderr]).toEqual([0, ''])
    expect(first.stdout).toMatch(/^applied 1 settings in \d+ ms\n/)
    expect(first.stdout).toMatch(/The schema holdfast is at version \d+\.\n$/)
    const second = await run(['migrate', '--json'], { env })
    expect(second.code).toBe(0)
    expect(JSON.parse(second.stdout)).toEqual({
      schema: 'holdfast',
      from: expect.any(Number),
      to: expect.any(Number),
      applied: [],
    })
  })

  it('takes the schema that it is given', async () => {
    const { stdout } = await run(['migrate', '--json', '--schema', 'ledger'], {
      env: { DATABASE_URL: await emptyDatabase() },
    })
    expect(JSON.parse(stdout)).toMatchObject({ schema: 'ledger', from: 0 })
  })
})

describe('serve', () => {
  it('refuses a database that was not migrated, and migrates it when told to', async () => {
    const env = { REDIS_URL: await freshRedis(), DATABASE_URL: await emptyDatabase() }
    const refused = await run(['serve', '--port', '0'], { env })
    expect(refused.code).toBe(1)
    expect(refused.stderr).toMatch(
      /^holdfast: DATABASE_URL: The schema holdfast is at version 0, .*run .*holdfast migrate/m,
    )

    const server = await holdfast(['serve', '--port', '0', '--migrate'], { env })
    const url = await server.ready()
    expect((await fetch(`${url}/health/ready`)).status).toBe(200)
    expect(await server.stop()).toMatchObject({ code: 0 })
  })

  it('runs on Sentinel and on a Cluster', async () => {
    const [sentinel, cluster] = [await sharedSentinel(), await sharedCluster()]
    const hosts = (list: { host: string; port: number }[]) => list.map(({ host, port }) => `${host}:${port}`).join(',')
    for (const REDIS_URL of [
      `redis+sentinel://${hosts(sentinel.sentinels)}/${sentinel.name}`,
      `redis+cluster://${hosts(cluster)}`,
    ]) {
      const server = await holdfast(['serve', '--port', '0'], {
        env: { REDIS_URL, DATABASE_URL: await freshDatabase() },
      })
      const url = await server.ready()
      expect((await fetch(`${url}/health/ready`)).status).toBe(200)
      expect(await server.stop()).toMatchObject({ code: 0 })
    }
  })

  it('says what is wrong with several hosts, without their password', async () => {
    const env = { REDIS_URL: 'redis+sentinel://me:hunter2@a:26379', DATABASE_URL: await freshDatabase() }
    const ended = await run(['serve', '--port', '0'], { env })
    expect(ended.code).toBe(1)
    expectMessage(ended)
    expect(ended.stderr).toMatch(/^holdfast: REDIS_URL: redis: expected the name of the master behind the sentinels/m)
    expect(ended.stderr).not.toContain('hunter2')
  })

  it('says which port is taken, and how to take another', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    const env = { REDIS_URL: await freshRedis(), DATABASE_URL: await freshDatabase() }
    const ended = await run(['serve', '--port', `${port}`], { env })
    taken.close()
    expect(ended.code).toBe(1)
    expectMessage(ended)
    expect(ended.stderr).toContain(`Port ${port} of 127.0.0.1 is taken: choose another with --port`)
  })

  it('says that an address is not of this machine', async () => {
    const env = { REDIS_URL: await freshRedis(), DATABASE_URL: await freshDatabase() }
    const ended = await run(['serve', '--host', '192.0.2.1', '--port', '0'], { env })
    expect(ended.code).toBe(1)
    expect(ended.stderr).toContain('192.0.2.1 is no address of this machine: choose another with --host')
  })

  it('answers with one line of JSON where it is asked to', async () => {
    const env = { REDIS_URL: await freshRedis(), DATABASE_URL: await freshDatabase() }
    const server = await holdfast(['serve', '--port', '0', '--json'], { env })
    const url = await server.ready()
    const { stdout, code } = await server.stop()
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({
      event: 'ready',
      url,
      version: expect.any(String),
      readyMs: expect.any(Number),
    })
  })

  it('ends with one redacted line when something throws that nobody catches', async () => {
    const env = { REDIS_URL: await freshRedis(), DATABASE_URL: await freshDatabase() }
    const bug =
      "process.once('SIGUSR2', () => Promise.reject(new Error('lost postgres://alice:' + 'hunter' + 2 + '@db')))"
    const server = await holdfast(['serve', '--port', '0', '--log-level', 'error'], {
      env: { ...env, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(bug)}` },
    })
    await server.ready()
    server.signal('SIGUSR2')
    const { code, stderr } = await server.ended
    expect(code).toBe(1)
    expect(JSON.parse(stderr)).toMatchObject({
      level: 'fatal',
      event: 'crashed',
      err: { message: 'lost postgres://[redacted]@db' },
    })
    expect(stderr).not.toContain('hunter2')
  })

  it('warns about a Postgres that could lose what was acknowledged', async () => {
    const env = { REDIS_URL: await freshRedis(), DATABASE_URL: await freshDatabase() }
    const server = await holdfast(['serve', '--port', '0'], { env })
    await server.ready()
    // What is said on one pipe may arrive before what was said on the other.
    await vi.waitFor(() => {
      expect(server.stderr).toMatch(/"event":"postgres_setting"/)
      expect(server.stderr).toMatch(/"setting":"fsync"/)
    }, 20_000)
  })
})
