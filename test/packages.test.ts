/** What users get: each package packed, installed into an empty project, and used there. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { scratchFolder } from '../packages/services/src/folder.js'
import { type Registry, startRegistry } from './registry.js'
import { built, freshDatabase, freshRedis } from './servers.js'

// A process, or several, each time.
vi.setConfig({ testTimeout: 120_000 })

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const execute = promisify(execFile)

const scratch = scratchFolder('packages')
const project = join(scratch.path, 'an empty project')
let registry: Registry

const environment = (more: Record<string, string> = {}) => ({
  PATH: process.env.PATH,
  HOME: scratch.path,
  NO_COLOR: '1',
  npm_config_cache: join(scratch.path, 'cache'),
  npm_config_update_notifier: 'false',
  npm_config_registry: registry.url,
  ...more,
})

const run = (file: string, args: readonly string[], more?: Record<string, string>) =>
  execute(file, [...args], { cwd: project, env: environment(more) })

beforeAll(async () => {
  await built()
  registry = await startRegistry(ROOT)
  mkdirSync(project)
  for (const name of readdirSync(join(ROOT, 'packages'))) {
    await execute('npm', ['pack', '--silent', '--pack-destination', scratch.path, join(ROOT, 'packages', name)])
  }
  const tarballs = readdirSync(scratch.path).filter((name) => name.endsWith('.tgz'))
  expect(tarballs).toHaveLength(3)
  writeFileSync(join(project, 'package.json'), '{ "name": "empty", "private": true, "type": "module" }\n')
  // Without the optional ones: hundreds of megabytes of Postgres, for `dev` alone. The engines that they ask for must be ours.
  const how = ['--no-audit', '--no-fund', '--omit=optional', '--ignore-scripts', '--engine-strict']
  await run('npm', ['install', ...how, ...tarballs.map((name) => join(scratch.path, name))])
}, 180_000)

afterAll(() => {
  registry?.close()
  scratch.remove()
})

describe('the packages, installed into an empty project', () => {
  it('bring neither tests nor sources, and no program that runs at install', () => {
    for (const name of ['holdfast', '@holdfast/server', '@holdfast/services']) {
      const folder = join(project, 'node_modules', name)
      const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      expect(files).toContain(join('dist', 'index.d.ts'))
      expect(files.filter((file) => /^(src|test)\b|\.test\.|tsbuildinfo/.test(file))).toEqual([])
      const { scripts = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
      expect(Object.keys(scripts)).toEqual([])
    }
  })

  it('keep a wallet from a program of one’s own', async () => {
    writeFileSync(
      join(project, 'first.mjs'),
      `import { Holdfast, HoldfastError } from 'holdfast'
       const hf = await Holdfast.connect({ redis: process.env.REDIS_URL, postgres: process.env.DATABASE_URL })
       const wallet = hf.wallet('user_42')
       await wallet.open({ currency: 'usd' })
       await wallet.credit(500, { key: 'topup' })
       const hold = await wallet.hold(200, { key: 'call', ttl: 60_000 })
       await hold.settle(150, { key: 'end' })
       const refused = await wallet.debit(1_000, { key: 'much' }).catch((error) => error)
       console.log((await wallet.get()).available, refused instanceof HoldfastError, refused.code)
       await hf.close()`,
    )
    const servers = { REDIS_URL: await freshRedis(), DATABASE_URL: await freshDatabase() }
    const { stdout } = await run(process.execPath, ['first.mjs'], servers)
    expect(stdout).toBe('350 true insufficient_funds\n')
  })

  it('keep clients of stripe402, and hold any store of theirs to the suite, with nothing but Node', async () => {
    writeFileSync(
      join(project, 'store.test.mjs'),
      `import { after, test } from 'node:test'
       import { RedisStore } from 'holdfast/stripe402'
       import { testLedgerStore, testStripe402Store } from 'holdfast/stripe402/conformance'
       import { Redis } from 'ioredis'
       const redis = new Redis(process.env.REDIS_URL)
       testStripe402Store({ test, makeStore: () => new RedisStore(redis) })
       testLedgerStore({ test, makeStore: () => new RedisStore(redis) })
       after(() => redis.disconnect())`,
    )
    const { stdout } = await run(process.execPath, ['--test', 'store.test.mjs'], { REDIS_URL: await freshRedis() })
    expect(stdout).toMatch(/^# fail 0$/m)
    expect(Number(/^# pass (\d+)$/m.exec(stdout)?.[1])).toBeGreaterThan(50)
  })

  it('have types that a strict program compiles against', async () => {
    writeFileSync(
      join(project, 'typed.ts'),
      `import { startRedis, type RedisHandle } from '@holdfast/services'
       import { createApp } from '@holdfast/server'
       import { Holdfast, type Receipt } from 'holdfast'
       import { type LedgerStore, RedisStore } from 'holdfast/stripe402'
       import { Cluster, Redis } from 'ioredis'
       export async function topUp(hf: Holdfast): Promise<Receipt> {
         return hf.wallet('user_42').credit(500, { key: 'topup' })
       }
       // @ts-expect-error an amount is a number
       export const wrong = (hf: Holdfast) => hf.wallet('user_42').credit('500', { key: 'topup' })
       export const app: Parameters<typeof createApp>[0]['version'] = '1'
       export const stores: LedgerStore[] = [new RedisStore(new Redis()), new RedisStore(new Cluster([]), { tagged: true })]
       export const redis: () => Promise<RedisHandle> = startRedis`,
    )
    const options = ['--strict', '--noEmit', '--module', 'nodenext', '--target', 'es2023', '--types', 'node']
    await run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), ...options, 'typed.ts'])
  })

  it('have the command, which helps and completes', async () => {
    const help = await run('npx', ['--no-install', 'holdfast', '--help'])
    expect(help.stdout).toMatch(/^ +wallet /m)
    expect((await run('npx', ['--no-install', 'holdfast', 'completion', 'bash'])).stdout).toContain('complete -F')
    const failure = await run('npx', ['--no-install', 'holdfast', 'sim']).catch((error) => error)
    expect(failure).toMatchObject({ code: 1, stderr: expect.stringContaining('clone the repository') })
  })

  it('serve, on real servers', async () => {
    const servers = {
      REDIS_URL: await freshRedis(),
      DATABASE_URL: await freshDatabase(),
      // What is there is there, on a machine that stands still for a moment too.
      HOLDFAST_HEALTH_TIMEOUT_MS: '20000',
    }
    const command = join(project, 'node_modules/.bin/holdfast')
    const server = spawn(command, ['serve', '--port', '0', '--json'], { cwd: project, env: environment(servers) })
    const ended = once(server, 'close')
    try {
      const [line] = (await once(server.stdout, 'data')) as [Buffer]
      const { url } = JSON.parse(String(line))
      expect((await fetch(`${url}/health/ready`)).status).toBe(200)
      // Scripts and styles of the page come out of a package too.
      expect((await fetch(`${url}/docs/`)).status).toBe(200)
      expect((await fetch(`${url}/openapi.json`)).status).toBe(200)
    } finally {
      server.kill('SIGTERM')
    }
    expect(await ended).toEqual([0, null])
  })
})
