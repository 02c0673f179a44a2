import { randomBytes } from 'node:crypto'

const PROCESS = randomBytes(12).toString('base64url')
let owners = 0

/** No two takings have the same owner, of whichever process: its part by chance, and a number. */
export function nextOwner(): string {
  owners += 1
  return `${PROCESS}.${owners.toString(36)}`
}
