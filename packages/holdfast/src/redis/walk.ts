import { Command } from 'ioredis'
import { RedisUnavailable } from './outcome.js'

/** A plain command that knows over which connection it went last. Its reply comes as text. */
export class PlainCommand extends Command {
  socket: object | undefined

  constructor(name: string, args: readonly (string | number)[]) {
    super(name, [...args], { replyEncoding: 'utf8' })
  }

  override toWritable(socket: object): string | Buffer {
    this.socket = socket
    return super.toWritable(socket)
  }
}

/**
 * Keys like this, in portions that may be empty, of all these masters. One that comes or goes meanwhile may be told or not; one may be told twice. A cursor means
 * another thing to another server, and to the same one after a restart: where the connection is not the one that the walk began on, it
 * fails rather than end as if it had told all. So it does where there is nobody to ask.
 */
export async function* walkKeys<Node>(
  masters: readonly Node[],
  { pattern, portion }: { readonly pattern: string; readonly portion: number },
  ask: (node: Node, command: PlainCommand) => Promise<unknown>,
): AsyncGenerator<string[]> {
  if (masters.length === 0) throw new RedisUnavailable('not_executed', 'No master of Redis is connected')
  for (const node of masters) {
    let socket: object | undefined
    for (let cursor = '0', first = true; first || cursor !== '0'; first = false) {
      const command = new PlainCommand('scan', [cursor, 'MATCH', pattern, 'COUNT', portion])
      const [next, keys] = (await ask(node, command)) as [string, string[]]
      if (first) socket = command.socket
      if (command.socket !== socket) {
        throw new RedisUnavailable(
          'not_executed',
          'The connection broke in the middle of a walk over all keys: begin it anew',
        )
      }
      cursor = next
      yield keys
    }
  }
}
