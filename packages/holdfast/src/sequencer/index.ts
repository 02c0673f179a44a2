export * from './reply.js'
export * from './sequencer.js'
export { stockField, stockFields, stockSize } from './stock.js'
