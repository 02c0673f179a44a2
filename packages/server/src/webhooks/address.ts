import { BlockList, isIP } from 'node:net'
import { HoldfastError } from 'holdfast'

const URL_MAX = 2_048

/** What no tenant has any business with: this machine, the network that it is in, and what is no place at all. */
const INTERNAL = new BlockList()
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const)
  INTERNAL.addSubnet(network, prefix, 'ipv4')
for (const [network, prefix] of [
  ['::', 128],
  ['::1', 128],
  // Ways to write an IPv4 address.
  ['64:ff9b::', 96],
  ['2002::', 16],
  ['100::', 64],
  ['2001:db8::', 32],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
] as const)
  INTERNAL.addSubnet(network, prefix, 'ipv6')

export const isPublic = (address: string): boolean =>
  isIP(address) !== 0 && !INTERNAL.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')

/** Hosts that an operator has named: they may be inside, and without TLS. */
export type AllowedHosts = ReadonlySet<string>

export const isAllowed = (allowed: AllowedHosts, { hostname, host }: URL): boolean =>
  allowed.has(hostname) || allowed.has(host)

/** An IPv6 address stands in brackets in a URL. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1')

/** What can be said before anybody is asked. Where a name leads to is looked at when it is connected to, each time. */
export function checkUrl(argument: string, text: string, allowed: AllowedHosts): string {
  const wrong = (expected: string, got: string): HoldfastError =>
    new HoldfastError('invalid_argument', `${argument}: expected ${expected}, got ${got}`, { argument })
  if (text.length > URL_MAX) throw wrong(`at most ${URL_MAX} characters`, `${text.length}`)
  if (!URL.canParse(text)) throw wrong('a URL such as https://example.com/holdfast', 'something else')
  const url = new URL(text)
  const secure = url.protocol === 'https:'
  if (!secure && !(url.protocol === 'http:' && isAllowed(allowed, url))) throw wrong('https', `${url.protocol}//`)
  if (url.username !== '' || url.password !== '') throw wrong('no user and no password', 'one')
  if (url.hash !== '') throw wrong('no fragment', 'one')
  if (isIP(hostOf(url)) !== 0 && !isPublic(hostOf(url)) && !isAllowed(allowed, url)) {
    throw wrong('a public address', 'one that is not')
  }
  return url.href
}
