export type { CallOptions, Operation, Subject } from './operation.js'
export { OPERATIONS } from './table.js'
