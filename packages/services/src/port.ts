import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

/** A loopback port that nobody listens on right now. Somebody else may still take it first: see `startOnFreePort`. */
export async function freePort(): Promise<number> {
  const probe = createServer()
  probe.listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}

const ATTEMPTS_MAX = 5

/** Between finding a port and listening on it another process may take it: then the server says so, and the next port is tried. */
export async function startOnFreePort<T>(start: (port: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(await freePort())
    } catch (error) {
      const portTaken = /address already in use|EADDRINUSE/i.test(String(error))
      if (!portTaken || attempt === ATTEMPTS_MAX) throw error
    }
  }
}
