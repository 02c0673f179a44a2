import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket, connect as tcpConnect } from 'node:net'

/** A TCP proxy on loopback that loses replies, falls silent or hangs up when told to. */
export interface FaultyProxy {
  readonly port: number
  /** The server's next answer to `command` does not arrive: the connection is cut instead. Resolves when that has happened. */
  cutReplyTo(command: string): Promise<void>
  /** The next call of `command` does not arrive, nor anything after it: as `hold` from then on. Resolves when that has happened. */
  holdAt(command: string): Promise<void>
  /** Connections stay open, and are accepted, but nothing passes until `behave`. */
  hold(): void
  /** Whatever the server says arrives so much later, in its order, until `behave`. */
  delay(ms: number): void
  /** What is connected now never hears anything again, as when a host vanishes. New connections work. */
  freeze(): void
  /** Nobody is there: what is connected is cut, and so is whoever comes, until `behave`. */
  refuse(): void
  /** No more faults for new connections and those held. */
  behave(): void
  /** Cuts all connections. */
  cut(): void
  close(): Promise<void>
}

export async function startProxy(targetPort: number): Promise<FaultyProxy> {
  const sockets = new Set<Socket>()
  const frozen = new WeakSet<Socket>()
  let cutting: { command: string; done: () => void } | undefined
  let stopping: { command: string; done: () => void } | undefined
  let held: (() => void)[] | undefined
  let refusing = false
  let delayMs = 0

  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  const pass = (to: Socket, data: Buffer) => {
    if (frozen.has(to)) return
    if (held === undefined) to.write(data)
    else held.push(() => to.write(data))
  }
  const server = createServer((inside) => {
    if (refusing) {
      inside.on('error', () => {})
      inside.destroy()
      return
    }
    const outside = tcpConnect(targetPort, '127.0.0.1')
    for (const [socket, peer] of [
      [inside, outside],
      [outside, inside],
    ] as const) {
      socket.setNoDelay(true)
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        peer.destroy()
      })
    }
    let doomed = false
    // A timer may be early by a part of a millisecond: each lets the next one through, whichever that is.
    const late: Buffer[] = []
    const passLate = (data: Buffer) => {
      if (delayMs === 0 && late.length === 0) return pass(inside, data)
      late.push(data)
      setTimeout(() => pass(inside, late.shift() as Buffer), delayMs)
    }
    inside.on('data', (data) => {
      doomed ||= cutting !== undefined && data.includes(cutting.command)
      if (stopping !== undefined && data.includes(stopping.command)) {
        held ??= []
        stopping.done()
        stopping = undefined
      }
      pass(outside, data)
    })
    outside.on('data', (data) => {
      if (!doomed || cutting === undefined) return passLate(data)
      cutting.done()
      cutting = undefined
      inside.destroy()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    cutReplyTo: (command) =>
      new Promise((done) => {
        cutting = { command, done }
      }),
    holdAt: (command) =>
      new Promise((done) => {
        stopping = { command, done }
      }),
    hold() {
      held ??= []
    },
    delay(ms) {
      delayMs = ms
    },
    freeze() {
      for (const socket of sockets) frozen.add(socket)
    },
    refuse() {
      refusing = true
      cut()
    },
    behave() {
      refusing = false
      delayMs = 0
      cutting = undefined
      stopping = undefined
      const waiting = held ?? []
      held = undefined
      for (const write of waiting) write()
    },
    cut,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      cut()
      await closed
    },
  }
}
