import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { built } from '../../test/servers.js'
import { BadArguments, readArguments } from '../arguments.js'

const COMMAND = fileURLToPath(new URL('../../scripts/chaos.mjs', import.meta.url))

/** Runs `npm run chaos -- …` as a person would. */
async function chaos(...args: string[]): Promise<{ code: number; output: string }> {
  await built()
  const child = spawn(process.execPath, [COMMAND, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  child.stdout.on('data', (chunk) => (output += chunk))
  child.stderr.on('data', (chunk) => (output += chunk))
  const [code] = (await once(child, 'close')) as [number]
  return { code, output }
}

it('says what it does, and what it does not understand', async () => {
  const help = await chaos('--help')
  expect(help.code).toBe(0)
  expect(help.output).toContain('--topology single|sentinel|cluster')
  const refused = await chaos('--topology', 'triple')
  expect(refused).toEqual({ code: 2, output: '--topology: expected single, sentinel, cluster, got triple\n' })
  // The first to ask for a build waits for it.
}, 180_000)

it.each([
  [['--minutes', 'long'], '--minutes: expected a number up to 1440, got long'],
  [['--seed', '-1'], "Option '--seed' argument is ambiguous"],
  [['--seed', '1.5'], '--seed: expected an integer from 0, got 1.5'],
  [['--fast'], "Unknown option '--fast'"],
  [['--minutes', '0'], '--minutes: expected a number up to 1440, got 0'],
])('does not understand %j, and says why', (args, message) => {
  expect(() => readArguments(args)).toThrow(BadArguments)
  expect(() => readArguments(args)).toThrow(message)
})

it('does harm for a while, and tells what came of it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-chaos-test-'))
  const json = join(folder, 'result.json')
  const { code, output } = await chaos('--minutes', '0.02', '--seed', '2', '--json', json)
  expect(output).toContain('every promise was kept')
  expect(code).toBe(0)
  const { rounds } = JSON.parse(readFileSync(json, 'utf8'))
  expect(rounds).toHaveLength(1)
  expect(rounds[0].faults.length).toBeGreaterThan(0)
  expect(rounds[0].verdict).toMatchObject({ problems: [], summary: { operations: expect.any(Number) } })
  rmSync(folder, { recursive: true })
}, 400_000)
