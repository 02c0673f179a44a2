// Compiles one Lua script: reads the contract on top, flattens includes, strips comments.
//
// A script opens with its contract in comments, and the lines with an `@` are read by this compiler:
//
//   -- Takes a step of a wallet.                      purpose: the first line
//   --
//   -- KEYS[1]  the wallet                            what is handed in
//   -- ARGV[1]  number of commands
//   -- Returns  one line a command                    what comes back
//   --
//   -- @keys 1          number of keys; `1+` at least one
//   -- @resend never    may the runner send it again when the reply was lost: `safe` or `never`
//   -- @batch 64        optional: most commands a call; their number stands in ARGV[1] (`@batch 64 ARGV[2]`: in another)
//   -- @readonly        optional: writes nothing

import { createHash } from 'node:crypto'

/** Something is wrong with a source file. The message names file and line. */
export class SourceError extends Error {
  constructor(file, line, message) {
    super(line === 0 ? `${file}: ${message}` : `${file}:${line}: ${message}`)
    this.name = 'SourceError'
  }
}

const DIRECTIVES = {
  keys: { form: /^(0|[1-9]\d*)(\+?)$/, expected: '@keys <number> or @keys <number>+', required: true },
  resend: { form: /^(safe|never)$/, expected: '@resend safe or @resend never', required: true },
  batch: {
    form: /^([1-9]\d*)(?:\s+ARGV\[([1-9]\d*)\])?$/,
    expected: '@batch <number> or @batch <number> ARGV[<index>]',
  },
  readonly: { form: /^$/, expected: '@readonly' },
}

const CONTRACT = [
  ['what the KEYS are', /^--\s*KEYS\b/],
  ['what the ARGV are', /^--\s*ARGV\b/],
  ['what it returns', /^--\s*Returns\b/i],
]

const INCLUDE_NAME = /^[a-z][a-z0-9_-]*(?:\/[a-z][a-z0-9_-]*)+$/

/** Reads the comment block on top: `@` lines as values, and that a person finds the contract there. */
function readHeader(file, source) {
  const found = new Map()
  const lines = source.split('\n')
  const end = lines.findIndex((line) => !line.startsWith('--'))
  const header = end === -1 ? lines : lines.slice(0, end)
  if (!/^--\s*\w/.test(header[0] ?? '')) throw new SourceError(file, 1, 'expected a comment that tells the purpose')
  for (const [index, line] of header.entries()) {
    const match = /^--\s*@(\w*)\s*(.*?)\s*$/.exec(line)
    if (match === null || match[1] === 'include') continue
    const [, name, value] = match
    const directive = Object.hasOwn(DIRECTIVES, name) ? DIRECTIVES[name] : undefined
    if (directive === undefined) {
      const known = Object.keys(DIRECTIVES).map((known) => `@${known}`)
      throw new SourceError(file, index + 1, `expected one of ${known.join(', ')}, @include, got @${name}`)
    }
    if (found.has(name)) throw new SourceError(file, index + 1, `@${name} is there twice`)
    const parts = directive.form.exec(value)
    if (parts === null) throw new SourceError(file, index + 1, `expected ${directive.expected}, got @${name} ${value}`)
    found.set(name, parts)
  }
  for (const [name, { expected, required }] of Object.entries(DIRECTIVES)) {
    if (required && !found.has(name)) throw new SourceError(file, 1, `the contract on top lacks ${expected}`)
  }
  for (const [what, form] of CONTRACT) {
    if (!header.some((line) => form.test(line)))
      throw new SourceError(file, 1, `the contract on top does not tell ${what}`)
  }
  return found
}

/**
 * The lines of a Lua source, each with whether it *begins* in code. A line can also begin inside a long string, a long
 * comment or a quoted string continued with a backslash, where indentation and `--` are somebody's data.
 */
function scanLines(file, source) {
  const lines = []
  let inCode = true
  let lineStart = 0
  let position = 0
  const endLine = (stillInCode) => {
    lines.push({ text: source.slice(lineStart, position), inCode })
    inCode = stillInCode
    position += 1
    lineStart = position
  }
  const skipLong = (level, what) => {
    const opened = lines.length + 1
    const close = `]${'='.repeat(level)}]`
    position += level + 2
    while (!source.startsWith(close, position)) {
      if (position >= source.length) throw new SourceError(file, opened, `${what} is not closed`)
      if (source[position] === '\n') endLine(false)
      else position += 1
    }
    position += close.length
  }
  const longBracket = (at) => /^\[(=*)\[/.exec(source.slice(at, at + 32))
  while (position < source.length) {
    const char = source[position]
    if (char === '\n') {
      endLine(true)
    } else if (source.startsWith('--', position)) {
      const long = longBracket(position + 2)
      position += 2
      if (long !== null) skipLong(long[1].length, 'a long comment')
      else while (position < source.length && source[position] !== '\n') position += 1
    } else if (char === '"' || char === "'") {
      const opened = lines.length + 1
      position += 1
      while (source[position] !== char) {
        if (position >= source.length || source[position] === '\n')
          throw new SourceError(file, opened, 'a string is not closed')
        if (source[position] !== '\\') position += 1
        else if (source[position + 1] === '\n') {
          position += 1
          endLine(false)
        } else position += 2
      }
      position += 1
    } else {
      const long = char === '[' ? longBracket(position) : null
      if (long !== null) skipLong(long[1].length, 'a long string')
      else position += 1
    }
  }
  if (lineStart < source.length) endLine(true)
  return lines
}

/**
 * The code that ships: includes in place, each once; comment lines, blank lines and indentation gone. Stripping makes
 * the SHA-1 that of the code alone: a better comment is not another script.
 */
function flatten(file, source, include, state) {
  const out = []
  for (const [index, { text, inCode }] of scanLines(file, source).entries()) {
    if (!inCode) {
      out.push(text)
      continue
    }
    const line = text.trimStart()
    const asked = /^--\s*@include\b\s*(.*?)\s*$/.exec(line)
    if (asked !== null) {
      out.push(...flattenInclude(file, index + 1, asked[1], include, state))
      continue
    }
    const comment = line.startsWith('--') && !/^--\[=*\[/.test(line)
    if (line !== '' && !comment) out.push(line)
  }
  return out
}

function flattenInclude(file, line, name, include, { done, open }) {
  if (!INCLUDE_NAME.test(name))
    throw new SourceError(file, line, `expected @include <folder>/<name>, got @include ${name}`)
  if (open.includes(name)) throw new SourceError(file, line, `includes go in a circle: ${[...open, name].join(' → ')}`)
  if (done.has(name)) return []
  const found = include(name)
  if (found === undefined) throw new SourceError(file, line, `there is no ${name}.lua to include`)
  done.add(name)
  return flatten(found.file, found.source, include, { done, open: [...open, name] })
}

/**
 * Compiles one script. `include` finds an include by its name (`{ file, source }`, or `undefined` when there is none);
 * `file` is what error messages call the script.
 */
export function compileScript({ name, source, file = `${name}.lua`, include = () => undefined }) {
  const header = readHeader(file, source)
  const code = `${flatten(file, source, include, { done: new Set(), open: [] }).join('\n')}\n`
  const [, min, variable] = header.get('keys')
  const batch = header.get('batch')
  return {
    name,
    sha1: createHash('sha1').update(code).digest('hex'),
    keys: { min: Number(min), variable: variable === '+' },
    resend: header.get('resend')[1],
    batchMax: batch === undefined ? null : Number(batch[1]),
    batchArg: Number(batch?.[2] ?? 1),
    readonly: header.has('readonly'),
    source: code,
  }
}
