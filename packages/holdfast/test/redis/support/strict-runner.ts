import { createHash } from 'node:crypto'
import { Redis } from 'ioredis'
import {
  RedisConnection,
  RedisScriptRunner,
  type Script,
  type ScriptArg,
  type ScriptRunner,
} from '../../../src/redis/index.js'
import { RIGHTS } from './rights.js'

const USER = 'strict'
const PASSWORD = 'strict'
const REACHED = 'test:reached'
const CALL = /redis\.(p?call)\(/g
/** What users are told to allow, without the commands that see keys and don't name them. */
const COMMANDS = [...RIGHTS.commands, '-scan', '-randomkey', '-dbsize']

/** What a call site is known by, also where an include brings it into several scripts: its text up to the end of the line. */
const siteAt = (source: string, at: number) => source.slice(at, source.indexOf('\n', at))

export const sitesOf = ({ source }: Script): string[] =>
  [...source.matchAll(CALL)].map(({ index }) => siteAt(source, index))

/**
 * Runs scripts as a user whom the server allows the declared keys of the very call and nothing else, and notes which call
 * sites were reached: what was never reached has not been checked.
 */
export class StrictRunner implements ScriptRunner {
  readonly #owner: Redis
  readonly #connection: RedisConnection
  readonly #runner: RedisScriptRunner

  private constructor(owner: Redis, url: string) {
    this.#owner = owner
    const { hostname, port, pathname } = new URL(url)
    this.#connection = new RedisConnection(`redis://${USER}:${PASSWORD}@${hostname}:${port}${pathname}`)
    this.#runner = new RedisScriptRunner(this.#connection)
  }

  /** On a server of one's own: it is emptied, and gets a user. */
  static async start(url: string): Promise<StrictRunner> {
    const owner = new Redis(url)
    await owner.acl('SETUSER', USER, 'reset', 'on', `>${PASSWORD}`, ...COMMANDS)
    await owner.acl('LOG', 'RESET')
    await owner.flushall()
    return new StrictRunner(owner, url)
  }

  async run(script: Script, keys: readonly string[], args: readonly ScriptArg[]): Promise<unknown> {
    const patterns = [REACHED, ...keys].map((key) => `~${key.replace(/[*?[\]\\]/g, '\\$&')}`)
    await this.#owner.acl('SETUSER', USER, 'resetkeys', ...patterns)
    return this.#runner.run(instrumented(script), keys, args)
  }

  /** What the server has denied, also where a script has hidden it from its caller. */
  async denied(): Promise<string[]> {
    const log = (await this.#owner.acl('LOG')) as unknown[][]
    return log.map((entry) => `${entry[entry.indexOf('reason') + 1]} ${entry[entry.indexOf('object') + 1]}`)
  }

  reached(): Promise<string[]> {
    return this.#owner.smembers(REACHED)
  }

  async close(): Promise<void> {
    await this.#connection.close()
    this.#owner.disconnect()
  }
}

/** The same script, which also notes each call site that it comes by. */
function instrumented(script: Script): Script {
  const notes = `local function reached(site, call, ...)
redis.call('SADD', '${REACHED}', site)
return call(...)
end
`
  const code = script.source.replace(CALL, (_, call: string, at: number) => {
    return `reached([==[${siteAt(script.source, at)}]==], redis.${call}, `
  })
  const source = notes + code
  return { ...script, source, sha1: createHash('sha1').update(source).digest('hex') }
}
