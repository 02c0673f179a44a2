export { type Connections, openConnections, StartError } from './connections.js'
export { type RunningServer, startServer } from './server.js'
export { untilSignal } from './signals.js'
