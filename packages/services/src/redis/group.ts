/** What Sentinel groups and Clusters share: several nodes in one temporary folder, up and down together. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ServicesError } from '../error.js'
import { type ScratchFolder, scratchFolder } from '../folder.js'
import { findRedis } from './binaries.js'
import { type RedisNode, startNode } from './node.js'

const POLL_MS = 25

export class RedisGroup {
  readonly #name: string
  // WebAssembly has neither replication nor cluster.
  readonly #binary = findRedis('installed')
  readonly #scratch: ScratchFolder
  readonly #nodes: RedisNode[] = []

  constructor(name: string) {
    this.#name = name
    this.#scratch = scratchFolder(name)
  }

  /** Starts a node in a folder of that name. */
  async add(
    name: string,
    settings: (port: number) => readonly string[] | Promise<readonly string[]>,
    sentinel = false,
  ): Promise<RedisNode> {
    const folder = join(this.#scratch.path, name)
    mkdirSync(folder)
    const node = await startNode({ name: `Redis ${name}`, binary: this.#binary, folder, settings, sentinel })
    this.#nodes.push(node)
    return node
  }

  /** Asks until it is so; a node that doesn't answer yet counts as "not yet". */
  async until(what: string, timeoutMs: number, isSo: () => Promise<boolean>): Promise<void> {
    const deadline = Date.now() + timeoutMs
    while (!(await isSo().catch(() => false))) {
      if (Date.now() > deadline) {
        throw new ServicesError(
          `The Redis ${this.#name} was not ready after ${timeoutMs} ms: ${what} did not come about`,
        )
      }
      await sleep(POLL_MS)
    }
  }

  /** Runs the set-up; if it fails nothing stays behind. */
  async setUp<T>(build: () => Promise<T>): Promise<T> {
    try {
      return await build()
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  async stop(): Promise<void> {
    // Killed, not asked: nothing here is kept, and members that say goodbye to each other take seconds.
    await Promise.all(this.#nodes.map((node) => node.kill()))
    this.#scratch.remove()
  }
}
