export { NO_LIFE } from './message.js'
export * from './reply.js'
export * from './sequencer.js'
