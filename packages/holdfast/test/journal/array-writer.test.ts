import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase } from '../../../../test/servers.js'
import { ArrayWriter, ELEMENT } from '../../src/journal/array-writer.js'

let client: pg.Client

beforeAll(async () => {
  client = new pg.Client(await freshDatabase())
  await client.connect()
})
afterAll(() => client.end())

/** What Postgres makes of an array: its JSON keeps every digit and every character. */
async function asRead(type: string, writer: ArrayWriter): Promise<string> {
  expect(writer.fits).toBe(true)
  const { rows } = await client.query(`SELECT to_json($1::${type}[])::text AS json`, [writer.end()])
  return rows[0].json
}

test('numbers arrive to the last digit, of either sign, in rows', async () => {
  const most = Number.MAX_SAFE_INTEGER
  const numbers = [0, -0, 1, -1, 2 ** 31 - 1, 2 ** 31, -(2 ** 31), -(2 ** 31) - 1, 2 ** 32, -(2 ** 32), most, -most]
  const writer = new ArrayWriter(ELEMENT.bigint, 2, 7, ArrayWriter.numberBytes(14))
  for (const number of numbers) writer.number(number)
  writer.number(-(2 ** 63))
  writer.null()
  const expected = [
    [0, 0, 1, -1, 2147483647, 2147483648, -2147483648],
    [-2147483649, 4294967296, -4294967296, most, -most, '-9223372036854775808', null],
  ]
  expect(await asRead('bigint', writer)).toBe(JSON.stringify(expected).replaceAll('"', ''))
})

test('text arrives to the letter', async () => {
  const texts = [
    '',
    'plain',
    'NULL',
    '{"a","b"}',
    'back\\slash',
    'tab\tand\nline',
    'grün',
    '漢字',
    '🂡 ace',
    'x'.repeat(5_000),
  ]
  const writer = new ArrayWriter(ELEMENT.text, texts.length, 0, 3 * texts.join('').length + 4 * texts.length)
  for (const text of texts) writer.text(text)
  expect(JSON.parse(await asRead('text', writer))).toEqual(texts)
})

test('bytes and ids arrive bit by bit', async () => {
  const ref = '0123456789abcdeffedcba9876543210'
  const bytes = new ArrayWriter(ELEMENT.bytea, 2, 0, 100)
  bytes.bytes(ref)
  bytes.bytes('')
  expect(JSON.parse(await asRead('bytea', bytes))).toEqual([`\\x${ref}`, '\\x'])
  const ids = new ArrayWriter(ELEMENT.uuid, 1, 0, 40)
  ids.uuid(ref)
  expect(JSON.parse(await asRead('uuid', ids))).toEqual(['01234567-89ab-cdef-fedc-ba9876543210'])
})

test.each<[string, (writer: ArrayWriter) => void]>([
  ['a fraction', (writer) => writer.number(1.5)],
  ['no number', (writer) => writer.number(Number.NaN)],
  ['an infinite number', (writer) => writer.number(Number.NEGATIVE_INFINITY)],
  ['a number of more than 64 bits', (writer) => writer.number(2 ** 63)],
  ['a NUL', (writer) => writer.text('a\0b')],
  ['half a character', (writer) => writer.text('a\ud800')],
  ['bytes that are no hex', (writer) => writer.bytes('0g')],
  ['bytes that end in the middle', (writer) => writer.bytes('abc')],
  ['hex in other letters', (writer) => writer.bytes('\u0130\u0130')],
  ['an id that is too short', (writer) => writer.uuid('0123')],
])('%s does not fit', (_, write) => {
  const writer = new ArrayWriter(ELEMENT.text, 1, 0, 100)
  write(writer)
  expect(writer.fits).toBe(false)
})
