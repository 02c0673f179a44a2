import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { Api } from './support/api.js'
import { holdfast, run } from './support/holdfast.js'

let api: Api
let env: { HOLDFAST_URL: string; HOLDFAST_KEY: string }
beforeAll(async () => {
  api = await Api.start()
  env = { HOLDFAST_URL: api.url, HOLDFAST_KEY: await api.key() }
})

/** Runs `holdfast wallet …`; what it says on standard error is part of the picture where it fails. */
const wallet = (...args: string[]) => run(['wallet', ...args], { env })

async function done(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await wallet(...args)
  expect([code, stderr]).toEqual([0, ''])
  return stdout
}

/** Rows of a table, each by its heading. Columns are two blanks apart or more. */
function rowsOf(text: string): Record<string, string>[] {
  const [head = '', ...rows] = text.trimEnd().split('\n\n')[0]?.split('\n') ?? []
  const names = head.split(/ {2,}/)
  return rows.map((row) => Object.fromEntries(row.split(/ {2,}/).map((cell, at) => [names[at], cell])))
}

describe('holdfast wallet', () => {
  it('opens, fills, reserves, charges, and tells what became of it', async () => {
    expect(rowsOf(await done('open', 'ann', '--currency', 'usd', '--metadata', '{"plan":"pro"}'))).toMatchObject([
      { WALLET: 'ann', CURRENCY: 'usd', AVAILABLE: '0', STATUS: 'active' },
    ])
    await done('credit', 'ann', '50000', '--key', 'topup')
    expect(await done('hold', 'ann', '2000', '--ttl', '15m', '--key', 'call')).toMatch(/^call +2,000 +0 +2,000 /m)
    await done('capture', 'ann', 'call', '300', '--key', 'first')
    await done('extend', 'ann', 'call', '--amount', '500', '--ttl', '1h', '--key', 'longer')
    expect(rowsOf(await done('holds', 'ann'))).toMatchObject([{ HOLD: 'call', LEFT: '2,200', STATUS: 'open' }])
    await done('settle', 'ann', 'call', '1700', '--key', 'end')
    await done('hold', 'ann', '10', '--ttl', '90s', '--key', 'other')
    await done('release', 'ann', 'other', '--key', 'let go')
    await done('debit', 'ann', '300', '--key', 'order', '--counter', 'shop')
    await done('refund', 'ann', '8', '100', '--key', 'back')
    await done('credit-limit', 'ann', '70', '--key', 'trust')
    await done('freeze', 'ann', '--key', 'stop')
    await done('unfreeze', 'ann', '--key', 'go')
    const entries = rowsOf(await done('entries', 'ann'))
    expect(entries.map(({ KIND, KEY }) => `${KIND} ${KEY}`)).toEqual([
      'credit topup',
      'hold call',
      'capture first',
      'extend longer',
      'settle end',
      'hold other',
      'release let go',
      'debit order',
      'refund back',
      'limit trust',
      'freeze stop',
      'unfreeze go',
    ])
    const shown = await done('show', 'ann')
    expect(rowsOf(shown)).toMatchObject([{ AVAILABLE: '48,100', RESERVED: '0', 'CREDIT LIMIT': '70', ENTRIES: '12' }])
    expect(shown).toContain('{"plan":"pro"}')
    expect(await done('explain', 'ann', 'call')).toContain(
      '1,700 minor units of usd charged, 800 minor units of usd returned',
    )
  })

  it('pages, and says how to go on', async () => {
    for (const id of ['page-a', 'page-b']) await done('open', id, '--currency', 'usd')
    const first = await done('list', '--after', 'page-', '--limit', '1')
    expect(rowsOf(first)).toMatchObject([{ WALLET: 'page-a' }])
    expect(first).toContain("There are more: --after 'page-a'")
    expect(rowsOf(await done('list', '--after', 'page-a', '--limit', '1'))).toMatchObject([{ WALLET: 'page-b' }])
    expect(await done('entries', 'page-a')).toBe('There are no entries.\n')
    expect(await done('holds', 'page-a')).toBe('There are no open holds.\n')
    expect(JSON.parse(await done('close', 'page-a', '--json'))).toMatchObject({ entry: { kind: 'close' } })
  })

  it('makes a key where none is given and shows it; with it the same is not done twice', async () => {
    await done('open', 'key', '--currency', 'usd')
    const first = JSON.parse(await done('credit', 'key', '5', '--json', '--metadata', '{"a":[1]}'))
    expect(first).toMatchObject({ available: 5, replayed: false, entry: { metadata: { a: [1] } } })
    const again = await done('credit', 'key', '5', '--key', first.entry.key)
    expect(again).toContain('This key was used before')
    expect(rowsOf(again)).toMatchObject([{ SEQ: '1', AVAILABLE: '5', KEY: first.entry.key }])
    for (const odd of ['"', '\\', ' a "quoted\\ one ', '100%']) {
      expect(JSON.parse(await done('credit', 'key', '1', '--key', odd, '--json')).entry.key).toBe(odd)
    }
  })

  it('takes ids as they are', async () => {
    const id = 'a/b?c=1&d#e %41 é'
    expect(JSON.parse(await done('open', id, '--currency', 'usd', '--json'))).toMatchObject({ id })
    expect(JSON.parse(await done('show', id, '--json'))).toMatchObject({ id, seq: 0 })
  })

  it('ends with 1 where the server refuses: for people with the facts, for scripts with what the server sent', async () => {
    await done('open', 'poor', '--currency', 'usd')
    const told = await wallet('debit', 'poor', '1')
    expect([told.code, told.stdout]).toEqual([1, ''])
    expect(told.stderr).toMatch(/^holdfast: insufficient_funds: .* \(available: 0\)\n$/)
    const { code, stdout } = await wallet('debit', 'poor', '1', '--json')
    expect(code).toBe(1)
    expect(JSON.parse(stdout)).toMatchObject({ status: 409, code: 'insufficient_funds', available: 0 })
    expect((await wallet('show', 'nobody')).stderr).toContain('holdfast: wallet_not_found: ')
    const stranger = await run(['wallet', 'show', 'poor'], { env: { ...env, HOLDFAST_KEY: 'hf_nobody' } })
    expect([stranger.code, stranger.stderr]).toEqual([1, expect.stringContaining('unauthenticated')])
    expect(stranger.stderr).not.toContain('hf_nobody')
  })

  it.each([
    [['debit', 'w', '1.5'], '<amount>: expected a whole number in the smallest unit'],
    [['debit', 'w', '9007199254740992'], 'got "9007199254740992"'],
    [['settle', 'w', 'h', 'all'], '<total>: expected a whole number'],
    [['hold', 'w', '1'], '--ttl: expected a number with ms, s, m, h or d, such as 15m, up to 400d, got nothing'],
    [['hold', 'w', '1', '--ttl', '401d'], 'got "401d"'],
    [['credit', 'w', '1', '--key', '~mine'], '--key: expected 1 to 255 printable ASCII characters'],
    [['credit', 'w', '1', '--metadata', '{a:1}'], '--metadata: expected JSON'],
    [['capture', 'w', 'h', '1', '--beyond', 'all'], '--beyond: expected one of reject, available'],
    [['extend', 'w', 'h'], 'Expected --amount, --ttl or both, got neither'],
    [['show', 'a\nb'], '<wallet>: expected 1 to 255 characters'],
    [['show'], "missing required argument 'wallet'"],
    [['show', 'w', '--url', 'ftp://x'], '--url: expected a URL such as https://'],
    [['shwo', 'w'], "unknown command 'shwo'"],
  ])('refuses %j with exit code 2, and asks nobody', async (args, message) => {
    // Nobody is there: had it asked, it would say so.
    const nowhere = { ...env, HOLDFAST_URL: 'http://127.0.0.1:9' }
    const { code, stdout, stderr } = await run(['wallet', ...args], { env: nowhere })
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(message)
  })

  it('tries again with the same key where there is no answer, and it is done once', async () => {
    await done('open', 'shaky', '--currency', 'usd')
    let connections = 0
    const answersLost = 2
    // The requests arrive; of the first two the answers are lost.
    const proxy = createServer((socket) => {
      const lost = ++connections <= answersLost
      const upstream = connect(Number(new URL(api.url).port), '127.0.0.1')
      socket.pipe(upstream).on('error', () => {})
      socket.on('error', () => {})
      if (lost) upstream.once('data', () => socket.destroy())
      else upstream.pipe(socket)
    }).listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
    const ended = await run(['wallet', 'credit', 'shaky', '7', '--json', '--url', url], { env })
    proxy.close()
    expect([ended.code, connections]).toEqual([0, answersLost + 1])
    expect(JSON.parse(ended.stdout)).toMatchObject({ available: 7, replayed: true })
    expect(ended.stderr).toMatch(/^holdfast: No answer from http:.*; trying again \(2 of 5\)$/m)
  })

  it('says how to find out where there was no answer at all', async () => {
    const closed = createServer().listen(0, '127.0.0.1')
    await once(closed, 'listening')
    const url = `http://127.0.0.1:${(closed.address() as AddressInfo).port}`
    closed.close()
    const { code, stderr } = await run(['wallet', 'credit', 'w', '7', '--url', url], { env })
    expect(code).toBe(1)
    expect(stderr).toMatch(/No answer from http:.* \(ECONNREFUSED\)\n.*The same again is safe: --key '[\w-]{36}'\n$/)
  })

  it('watches: what comes is shown as it comes, until it is told to stop', async () => {
    await done('open', 'seen', '--currency', 'usd')
    await done('credit', 'seen', '1', '--key', 'before')
    const [people, scripts] = await Promise.all([
      holdfast(['wallet', 'watch', 'seen'], { env }),
      holdfast(['wallet', 'watch', 'seen', '--json', '--after', '0'], { env }),
    ])
    await vi.waitFor(() => expect(people.stdout).toMatch(/^SEQ .*KEY/m), 20_000)
    await done('credit', 'seen', '2', '--key', 'now')
    await vi.waitFor(() => expect(people.stdout).toMatch(/^2 .* credit .* now$/m), 20_000)
    await vi.waitFor(() => expect(scripts.stdout.trim().split('\n')).toHaveLength(2), 20_000)
    expect(people.stdout).not.toContain('before')
    const lines = scripts.stdout.trim().split('\n')
    expect(lines.map((line) => JSON.parse(line).key)).toEqual(['before', 'now'])
    for (const one of [people, scripts]) {
      one.signal('SIGINT')
      expect(await one.ended).toMatchObject({ code: 0, stderr: '' })
    }
  })

  it('takes the key of dev for a server on this machine, and for no other', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-wallet-'))
    try {
      mkdirSync(join(folder, '.holdfast'))
      writeFileSync(join(folder, '.holdfast/api-key'), `${env.HOLDFAST_KEY}\n`)
      const here = { env: { HOLDFAST_URL: api.url }, cwd: folder }
      expect((await run(['wallet', 'open', 'dev', '--currency', 'usd'], here)).code).toBe(0)
      const elsewhere = { env: { HOLDFAST_URL: 'http://holdfast.invalid' }, cwd: folder }
      const { code, stderr } = await run(['wallet', 'show', 'dev'], elsewhere)
      expect([code, stderr]).toEqual([2, expect.stringContaining('HOLDFAST_KEY: expected an API key')])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
