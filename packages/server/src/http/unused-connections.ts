import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/**
 * Clients connect in advance: browsers do, and Node's fetch after a request that was cut short. To Node such a connection, on which nothing
 * was ever sent, is not idle, and a stop would wait for it for as long as it is allowed to.
 */
export function closeUnusedConnections(app: FastifyInstance): void {
  const connections = new Set<Socket>()
  app.server.on('connection', (socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })
  app.addHook('preClose', async () => {
    for (const socket of connections) if (socket.bytesRead === 0) socket.destroy()
  })
}
