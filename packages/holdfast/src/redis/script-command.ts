import { Command } from 'ioredis'
import type { Script } from './script.js'

export type ScriptArg = string | number | Buffer

const PING = '*1\r\n$4\r\nPING\r\n'

/**
 * One sending of a script, which knows what ioredis does not tell: whether it has left this process. ioredis serialises a
 * command at the moment it writes it, and rejects it with the same words before and after.
 */
export class ScriptCommand extends Command {
  /** Handed to the socket at least once. Where a redirection came between it may be too careful, never too sure. */
  sent = false

  /** By its SHA-1, or with its source, which also makes the server remember it. */
  constructor(script: Script, bySource: boolean, keys: readonly string[], args: readonly ScriptArg[]) {
    super(bySource ? 'eval' : 'evalsha', [bySource ? script.source : script.sha1, keys.length, ...keys, ...args], {
      // Replies are bytes: half of what scripts say is packed.
      replyEncoding: null,
    })
  }

  override toWritable(socket: object): string | Buffer {
    // ioredis goes on to send what was given up while it waited (for a node to connect, for a slot to move). Its caller
    // was told that it did not run, so it must not: a PING takes its place, and replies stay in step with commands.
    if (this.isSettled) return PING
    this.sent = true
    return super.toWritable(socket)
  }
}
