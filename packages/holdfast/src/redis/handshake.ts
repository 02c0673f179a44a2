import type { Redis } from 'ioredis'

/** Answers to AUTH that mean: nobody is asked for a password here. */
const NO_PASSWORD_NEEDED = /no password is set|without any password configured for the default user/

/**
 * Takes the answers of the server to what ioredis asks first on each connection, where its own way with them is not ours: after a SELECT that
 * was refused it goes on in database 0, which may be somebody else's, and about a password that was not needed it writes to the console.
 */
export function watchHandshake(client: Redis, passwordNotNeeded: () => void): void {
  const auth = client.auth.bind(client) as (...credentials: unknown[]) => Promise<unknown>
  const select = client.select.bind(client)
  Object.assign(client, {
    async auth(...credentials: unknown[]) {
      try {
        return await auth(...credentials)
      } catch (error) {
        if (NO_PASSWORD_NEEDED.test((error as Error).message)) return passwordNotNeeded()
        // Told before the SELECT behind it is refused for want of it: the first error of an attempt is its cause.
        client.emit('error', error)
        throw error
      }
    },
    async select(db: number) {
      try {
        return await select(db)
      } catch (error) {
        if (client.status === 'connect') client.disconnect(true)
        throw new Error(`database ${db}: ${(error as Error).message}`)
      }
    },
  })
}
