import { Redis } from 'ioredis'

/** Its port, on the loopback interface, and a password if it asks for one. */
type Server = number | { readonly port: number; readonly password: string | undefined }

/** One command on a connection of its own, for looking after servers that may well be down: it never retries. */
export async function ask(server: Server, ...command: [string, ...(string | number)[]]): Promise<unknown> {
  const client = new Redis({
    host: '127.0.0.1',
    ...(typeof server === 'number'
      ? { port: server }
      : { port: server.port, ...(server.password && { password: server.password }) }),
    lazyConnect: true,
    connectTimeout: 1_000,
    commandTimeout: 5_000,
    retryStrategy: null,
    maxRetriesPerRequest: 0,
    // A group still forming answers this check with LOADING for a while; the caller asks again.
    enableReadyCheck: false,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    const [name, ...args] = command
    return await client.call(name, args)
  } finally {
    client.disconnect()
  }
}

/** The `name:value` lines of INFO and CLUSTER INFO. */
export async function askForFields(server: Server, ...command: [string, ...string[]]): Promise<Map<string, string>> {
  const text = String(await ask(server, ...command))
  const lines = text.split('\r\n').filter((line) => line.includes(':'))
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]))
}
