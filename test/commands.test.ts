import { appendFileSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describe as describeProcess } from '../scripts/processes.mjs'
import { type Clone, type Command, cloneRepository } from './clone.js'

let clone: Clone

beforeAll(async () => {
  clone = await cloneRepository()
})

afterAll(() => clone.remove())

const lastLine = (command: Command) => command.output().trimEnd().split('\n').at(-1)

function runTests(name: string, source: string): Command {
  writeFileSync(join(clone.path, 'test', name), source)
  // Errors go where the rest goes, as in a terminal: of two pipes, what was said last may arrive first.
  return clone.run('sh', ['-c', 'exec npm test -- "$0" 2>&1', `test/${name}`])
}

const IMPORT = "import { expect, test } from 'vitest'\n"

test('npm test ends with the numbers in one plain line', async () => {
  const command = runTests(
    'numbers.test.ts',
    `${IMPORT}test('one', () => expect(1).toBe(1))\ntest('two', () => expect(2).toBe(2))`,
  )
  expect(await command.ended).toBe(0)
  expect(lastLine(command)).toBe('2 passed, 0 failed')
})

test.each([
  [
    'a failed test',
    `${IMPORT}test('right', () => expect(1).toBe(1))\ntest('wrong', () => expect(1).toBe(2))`,
    '1 passed, 1 failed',
  ],
  ['a file that can’t be loaded', "import './not-there.js'", '0 passed, 1 failed'],
  [
    'a rejection that nobody waits for',
    `${IMPORT}test('right', () => { Promise.reject(new Error('lost')) })`,
    '1 passed, 1 failed',
  ],
  ['a crash', `${IMPORT}test('gone', () => process.kill(process.pid, 'SIGKILL'))`, '0 passed, 1 failed'],
  ['no test at all', '', '0 passed, 1 failed'],
])('npm test counts %s and fails', async (_, source, line) => {
  const command = runTests('outcome.test.ts', source)
  expect(await command.ended).toBe(1)
  expect(lastLine(command)).toBe(line)
})

test('npm test names what to install where it may not install it', async () => {
  // Node and nothing else on the path: neither Redis nor apt-get.
  const bin = join(clone.path, '..', 'bin')
  mkdirSync(bin)
  symlinkSync(process.execPath, join(bin, 'node'))
  const command = clone.run(process.execPath, ['scripts/test.mjs'], { env: { PATH: bin } })
  expect(await command.ended).toBe(1)
  expect(command.output().trim().split('\n')).toEqual([expect.stringMatching(/install redis-server or valkey-server/)])
})

test('two set-ups at once do the work once', async () => {
  appendFileSync(join(clone.path, 'packages/services/src/index.ts'), '// changed\n')
  rmSync(join(clone.path, 'packages/services/dist'), { recursive: true })
  // Somebody else holds the lock until both are there: however late one of them is, they meet.
  const lock = join(clone.path, 'node_modules/.cache/holdfast/setup.lock')
  writeFileSync(lock, `${process.pid} ${describeProcess(process.pid)?.startTicks}`)
  const both = [1, 2].map(() => clone.run('npm', ['run', '--silent', 'build']))
  const waits = new RegExp(`Waiting for the set-up that process ${process.pid} is doing…`)
  await Promise.all(both.map((command) => command.seen(waits)))
  rmSync(lock)
  expect(await Promise.all(both.map((command) => command.ended))).toEqual([0, 0])
  const output = both.map((command) => command.output()).join('')
  expect(output.match(/Building…/g)).toHaveLength(1)
  const again = clone.run('npm', ['run', '--silent', 'build'])
  await again.ended
  expect(again.output()).toBe('')
})

test('a build that fails says so and is tried again', async () => {
  const broken = join(clone.path, 'packages/services/src/broken.ts')
  writeFileSync(broken, 'export const port: number = "4020"\n')
  for (const _ of [1, 2]) {
    const command = clone.run('npm', ['run', '--silent', 'build'])
    expect(await command.ended).toBe(1)
    expect(command.output()).toContain('broken.ts')
    expect(lastLine(command)).toBe('The build failed; see above.')
  }
  rmSync(broken)
})

test('npm run sim, chaos and bench run TypeScript with the arguments and the exit code passed on', async () => {
  for (const name of ['sim', 'chaos', 'bench']) {
    const entry = join(clone.path, name, 'main.ts')
    mkdirSync(dirname(entry), { recursive: true })
    writeFileSync(
      entry,
      "import { ERRORS } from 'holdfast'\nconst got: string[] = process.argv.slice(2)\nconsole.log(got.join('|'), typeof ERRORS)\nprocess.exit(3)\n",
    )
    const command = clone.run('npm', ['run', '--silent', name, '--', '--seeds', 'a b'])
    expect(await command.ended).toBe(3)
    expect(lastLine(command)).toBe('--seeds|a b object')
  }
})
