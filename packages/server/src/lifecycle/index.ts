export { type Backend, type BackendSettings, openBackend } from './backend.js'
export { type Connections, openConnections } from './connections.js'
export { type RunningServer, startServer } from './server.js'
export { untilSignal } from './signals.js'
