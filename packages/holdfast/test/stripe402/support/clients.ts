/** Clients of ioredis that something happens to, as it happens to processes and connections. */
import type { Cluster, Command, Redis } from 'ioredis'
import { Command as RedisCommand } from 'ioredis'
import type { BorrowedClient } from '../../../src/redis/index.js'
import type { Script } from '../../../src/redis/script.js'

/** One of a process that dies: what it sends after so many commands does not leave it, and nothing is answered any more. */
export function dyingAfter(redis: Redis | Cluster, commands: number): BorrowedClient & { readonly sent: () => number } {
  let sent = 0
  return {
    isCluster: redis.isCluster,
    options: redis.options,
    sent: () => sent,
    sendCommand(command: Command) {
      if (sent === commands) return
      sent += 1
      redis.sendCommand(command)
    },
  }
}

/** One whose every call runs twice and is answered by the second, as when a reply is lost and ioredis sends the call again. */
export function stuttering(redis: Redis | Cluster, spared: readonly string[]): BorrowedClient {
  return {
    isCluster: redis.isCluster,
    options: redis.options,
    sendCommand(command: Command) {
      const isSpared = spared.includes(String(command.args[0]))
      if (command.name.startsWith('eval') && !isSpared) {
        const first = new RedisCommand(command.name, [...command.args] as string[])
        // NOSCRIPT, perhaps: then the second does not run either.
        first.promise.catch(() => {})
        redis.sendCommand(first)
      }
      return redis.sendCommand(command)
    },
    ...(redis.isCluster ? { nodes: (role: 'master') => (redis as Cluster).nodes(role) } : {}),
  }
}

/** One that is held up before it sends a script for the first time: meanwhile others do what they do. */
export function heldUpBefore(redis: Cluster, script: Script, others: () => Promise<unknown>): BorrowedClient {
  let isHeldUp = false
  return {
    isCluster: true,
    options: redis.options,
    sendCommand(command: Command) {
      const isIt = [script.sha1, script.source].includes(String(command.args[0]))
      if (isHeldUp || !isIt) return redis.sendCommand(command)
      isHeldUp = true
      void others().then(() => void redis.sendCommand(command))
      return command.promise
    },
  }
}
