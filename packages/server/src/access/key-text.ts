import * as crypto from 'node:crypto'

const { createHash, createHmac, randomBytes } = crypto
/** Not in every Node 20. */
const hash = (crypto as Partial<typeof crypto>).hash

/**
 * How a key looks:
 *
 *   hf_7Kp2mQ9xYb4T_<40 characters of secret><8 of check>
 *
 * The id is no secret: it is what lists and logs of operators show. The check is an HMAC of the rest under the database's own secret:
 * what was never given out by this database is turned away without asking it, so guessing costs the guesser and nobody else.
 */
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const ID_LENGTH = 12
const SECRET_LENGTH = 40
const CHECK_LENGTH = 8
const KEY = /^hf_([A-Za-z0-9]{12})_[A-Za-z0-9]{40}[0-9a-f]{8}$/

export function makeKeyText(databaseSecret: Uint8Array): { text: string; id: string; hash: Buffer } {
  const id = randomText(ID_LENGTH)
  const body = `hf_${id}_${randomText(SECRET_LENGTH)}`
  const text = body + checkOf(body, databaseSecret)
  return { text, id, hash: hashOf(text) }
}

/** The id that it names; null: it does not look like a key. */
export const idOf = (text: string): string | null => KEY.exec(text)?.[1] ?? null

/** Whether this database gave it out. Not compared in constant time: the check protects nothing but the database's time. */
export function wasGivenOut(text: string, databaseSecret: Uint8Array): boolean {
  return text.slice(-CHECK_LENGTH) === checkOf(text.slice(0, -CHECK_LENGTH), databaseSecret)
}

/** In one step where Node has one (20.12 and later): without the object in between it takes half the time. */
export const hashOf: (text: string) => Buffer = hash
  ? (text) => hash('sha256', text, 'buffer')
  : (text) => createHash('sha256').update(text).digest()

const checkOf = (body: string, secret: Uint8Array): string =>
  createHmac('sha256', secret).update(`api key ${body}`).digest('hex').slice(0, CHECK_LENGTH)

/** Every character as likely as any other: bytes that don't divide evenly are thrown away. */
function randomText(length: number): string {
  const fair = 256 - (256 % ALPHABET.length)
  let text = ''
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      if (byte < fair && text.length < length) text += ALPHABET[byte % ALPHABET.length]
    }
  }
  return text
}
