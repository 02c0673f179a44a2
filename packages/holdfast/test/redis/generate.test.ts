import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { compileScript, generate } from '../../../../scripts/generate.mjs'

const HEADER = `-- Does a thing.
--
-- KEYS[1]  the thing
-- ARGV[1]  how often
-- Returns  the thing
--
-- @keys 1
-- @resend safe
`

const compile = (source: string, includes: Record<string, string> = {}) =>
  compileScript({
    name: 'thing',
    source,
    include: (name) =>
      includes[name] === undefined ? undefined : { file: `${name}.lua`, source: includes[name] as string },
  })

describe('what is committed', () => {
  it('is in step with the Lua and SQL sources', () => {
    expect(generate({ check: true })).toEqual([])
  })
})

describe('the contract on top of a script', () => {
  it('becomes typed facts', () => {
    const script = compile(
      `${HEADER.replace('@keys 1', '@keys 2+').replace('safe', 'never')}-- @batch 64 ARGV[3]\n-- @readonly\nreturn 1\n`,
    )
    expect(script).toEqual({
      name: 'thing',
      sha1: '48df9b519ca145c867b895f740b37bd891e887af',
      keys: { min: 2, variable: true },
      resend: 'never',
      batchMax: 64,
      batchArg: 3,
      readonly: true,
      source: 'return 1\n',
    })
  })

  it('counts a batch by the first argument unless it says otherwise, and has no cap unless it names one', () => {
    expect(compile(`${HEADER}-- @batch 8\nreturn 1`)).toMatchObject({ batchMax: 8, batchArg: 1 })
    expect(compile(`${HEADER}return 1`)).toMatchObject({ batchMax: null, readonly: false })
  })

  it.each([
    ['no purpose', HEADER.replace('-- Does a thing.', 'local x = 1'), 'thing.lua:1: expected a comment that tells'],
    ['no keys', HEADER.replace('-- @keys 1\n', ''), 'thing.lua:1: the contract on top lacks @keys <number>'],
    ['no resend', HEADER.replace('-- @resend safe\n', ''), 'thing.lua:1: the contract on top lacks @resend safe'],
    ['keys that are no number', HEADER.replace('@keys 1', '@keys two'), 'thing.lua:7: expected @keys <number>'],
    ['a resend nobody knows', HEADER.replace('safe', 'maybe'), 'thing.lua:8: expected @resend safe or @resend never'],
    ['an empty batch', `${HEADER}-- @batch 0\n`, 'thing.lua:9: expected @batch <number>'],
    ['a value too many', `${HEADER}-- @readonly yes\n`, 'thing.lua:9: expected @readonly, got @readonly yes'],
    ['a word nobody knows', `${HEADER}-- @key 1\n`, 'thing.lua:9: expected one of @keys, @resend'],
    ['the same twice', `${HEADER}-- @keys 1\n`, 'thing.lua:9: @keys is there twice'],
    ['no word on KEYS', HEADER.replace('-- KEYS[1]  the thing\n', ''), 'does not tell what the KEYS are'],
    ['no word on ARGV', HEADER.replace('-- ARGV[1]  how often\n', ''), 'does not tell what the ARGV are'],
    ['no word on results', HEADER.replace('-- Returns  the thing\n', ''), 'does not tell what it returns'],
  ])('is refused with %s', (_, header, message) => {
    expect(() => compile(`${header}return 1\n`)).toThrow(message)
  })
})

describe('includes', () => {
  it('are put in place once each, through includes of their own', () => {
    const script = compile(`${HEADER}-- @include a/one\n-- @include a/two\nreturn one() + two()\n`, {
      'a/one': '-- @include a/two\nlocal function one() return two() end\n',
      'a/two': 'local function two() return 2 end',
    })
    expect(script.source).toBe(
      'local function two() return 2 end\nlocal function one() return two() end\nreturn one() + two()\n',
    )
  })

  it.each([
    ['a circle', '-- @include a/one', 'a/two.lua:1: includes go in a circle: a/one → a/two → a/one'],
    ['one that is not there', '-- @include a/three', 'thing.lua:9: there is no a/three.lua to include'],
    ['a script', '-- @include other', 'thing.lua:9: expected @include <folder>/<name>, got @include other'],
    ['a way out of the folder', '-- @include ../../etc/x', 'thing.lua:9: expected @include <folder>/<name>'],
  ])('refuse %s', (_, line, message) => {
    const includes = { 'a/one': '-- @include a/two', 'a/two': '-- @include a/one' }
    expect(() => compile(`${HEADER}${line}\nreturn 1\n`, includes)).toThrow(message)
  })
})

describe('stripping', () => {
  it('takes comments, blank lines and indentation, and nothing that is data', () => {
    const code = [
      'local a = "-- not a comment" -- trailing ones stay',
      '  -- gone',
      '',
      'local b = [==[',
      '    -- data ]] still data',
      '',
      '  ]==]',
      "local c = 'one \\",
      "   -- two \\' three'",
      '--[[ a long comment',
      '  stays ]] local d = 1',
      '    local e = b[a[1]]',
      'return d',
    ]
    const kept = [...code.slice(0, 1), ...code.slice(3, 11), 'local e = b[a[1]]', 'return d']
    expect(compile(`${HEADER}${code.join('\n')}\n`).source).toBe(`${kept.join('\n')}\n`)
  })

  it('leaves the SHA-1 alone when only a comment changes', () => {
    expect(compile(`${HEADER}-- one\nreturn 1\n`).sha1).toBe(compile(`${HEADER}  -- two\n  return 1`).sha1)
  })

  it.each([
    ['a string', 'local a = "open', 'thing.lua:9: a string is not closed'],
    ['a long string', 'local a = [[open\n', 'thing.lua:9: a long string is not closed'],
    ['a long comment', 'return 1 --[=[ ]]\n', 'thing.lua:9: a long comment is not closed'],
  ])('names the line where %s is not closed', (_, code, message) => {
    expect(() => compile(`${HEADER}${code}`)).toThrow(message)
  })
})

describe('generating a tree', () => {
  let root: string
  const write = (path: string, text: string) => {
    const file = join(root, 'packages/holdfast', path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  const read = (path: string) => readFileSync(join(root, 'packages/holdfast/src', path), 'utf8')
  // The generated modules are plain data: evaluated without their types, they must give back what went in.
  const evaluate = (path: string, name: string) => {
    const code = read(path)
      .replace(/^import .*$/m, '')
      .replaceAll(/export const (\w+)(?:: [^=]+)? =/g, 'const $1 =')
      .replace(/ as const.*$/m, '')
    return new Function(`${code}\nreturn ${name}`)() as unknown
  }
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'holdfast generate '))
  })
  afterEach(() => rmSync(root, { recursive: true }))

  it('gives empty modules for a tree without sources', () => {
    expect(generate({ root })).toHaveLength(4)
    expect(evaluate('redis/scripts.generated.ts', 'scripts')).toEqual({})
    expect(evaluate('postgres/migrations.generated.ts', 'MIGRATIONS')).toEqual([])
    expect(evaluate('postgres/queries.generated.ts', 'QUERIES')).toEqual({})
    expect(evaluate('stripe402/queries.generated.ts', 'QUERIES')).toEqual({})
  })

  it('carries scripts, migrations and queries over to the letter', () => {
    const sql = `SELECT '\\', \`a\`, '\${b}'; -- ü\n`
    write('lua/do-thing.lua', `${HEADER}-- @include parts/one\nreturn one("\\n\`\${x}")\n`)
    write('lua/parts/one.lua', 'local one = tostring\r\n')
    write('sql/0001_first.sql', sql)
    write('sql/0002_second_step.sql', 'SELECT 2;\r\nSELECT 3;\r\n')
    write('sql/queries/load-wallet.sql', sql)
    generate({ root })
    expect(evaluate('redis/scripts.generated.ts', 'scripts')).toEqual({
      doThing: expect.objectContaining({
        name: 'do-thing',
        source: `local one = tostring\nreturn one("\\n\`\${x}")\n`,
      }) as unknown,
    })
    expect(evaluate('postgres/migrations.generated.ts', 'MIGRATIONS')).toEqual([
      { version: 1, name: 'first', sql },
      { version: 2, name: 'second_step', sql: 'SELECT 2;\nSELECT 3;\n' },
    ])
    expect(evaluate('postgres/queries.generated.ts', 'QUERIES')).toEqual({ loadWallet: sql.trim() })
  })

  it('touches only what changed, and with check nothing', () => {
    generate({ root })
    const before = statSync(join(root, 'packages/holdfast/src/redis/scripts.generated.ts')).mtimeMs
    write('sql/0001_first.sql', 'SELECT 1;')
    expect(generate({ root, check: true })).toEqual(['packages/holdfast/src/postgres/migrations.generated.ts'])
    expect(evaluate('postgres/migrations.generated.ts', 'MIGRATIONS')).toEqual([])
    expect(generate({ root })).toEqual(['packages/holdfast/src/postgres/migrations.generated.ts'])
    expect(generate({ root, check: true })).toEqual([])
    expect(statSync(join(root, 'packages/holdfast/src/redis/scripts.generated.ts')).mtimeMs).toBe(before)
  })

  it.each([
    ['a gap', ['sql/0001_a.sql', 'sql/0003_b.sql'], '0003_b.sql: migrations are numbered from 0001 without gaps'],
    ['a number twice', ['sql/0001_a.sql', 'sql/0001_b.sql'], 'sql/0001_b.sql: migrations are numbered'],
    ['a migration without number', ['sql/first.sql'], 'sql/first.sql: expected a name of the form NNNN_name.sql'],
    ['two files of one name', ['sql/queries/a-b.sql', 'sql/queries/a_b.sql'], 'becomes aB, and so does'],
    ['a name that is none', ['sql/queries/A b.sql'], 'expected a name of lower-case words'],
  ])('refuses %s', (_, paths, message) => {
    for (const path of paths) write(path, 'SELECT 1;')
    expect(() => generate({ root })).toThrow(message)
  })
})

describe('the command', () => {
  const script = fileURLToPath(new URL('../../../../scripts/generate.mjs', import.meta.url))
  const run = (...args: string[]) => execFileSync(process.execPath, [script, ...args], { encoding: 'utf8' })

  it('is silent when everything is in step', () => {
    expect(run('--check')).toBe('')
  })

  it('says what it expected instead of showing a stack', () => {
    expect(() => run('--fix')).toThrow(/^Command failed[^\n]*\ngenerate: expected no argument or --check, got --fix\n$/)
  })
})
