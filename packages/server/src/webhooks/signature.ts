import { createHmac } from 'node:crypto'

/** The body is signed together with the time, so that nobody can send it again later as if it were news. */
export const SIGNATURE_HEADER = 'holdfast-signature'

/** `t=<seconds since 1970>,v1=<HMAC-SHA256 of "<t>.<body>" in hexadecimal>` */
export function signatureOf(secret: string, seconds: number, body: string): string {
  const digest = createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')
  return `t=${seconds},v1=${digest}`
}

/** Each webhook has a secret of its own that follows from its id: so none has to be stored, and none can be read from a copy of its row. */
export function webhookSecret(databaseSecret: Uint8Array, id: string): string {
  return `whsec_${createHmac('sha256', databaseSecret).update(`webhook v1 ${id}`).digest('base64url')}`
}
