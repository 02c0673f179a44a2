export * from './reply.js'
export * from './sequencer.js'
