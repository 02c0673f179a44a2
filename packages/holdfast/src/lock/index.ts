export type { Lease } from './lease.js'
export { Locks } from './locks.js'
