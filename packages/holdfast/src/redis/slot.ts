const SLOTS = 16_384
const POLYNOMIAL = 0x1021

/** CRC-16 of the XMODEM kind, a byte at a time. */
const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? (crc << 1) ^ POLYNOMIAL : crc << 1
  return crc
})

/** The slot of a Cluster in which keys with this hash tag lie. The tag is ASCII. */
export function slotOf(tag: string): number {
  let crc = 0
  for (let at = 0; at < tag.length; at += 1) {
    crc = ((crc << 8) ^ (TABLE[((crc >> 8) ^ tag.charCodeAt(at)) & 0xff] as number)) & 0xffff
  }
  return crc % SLOTS
}
