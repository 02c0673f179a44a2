export { decide } from './decide.js'
export { genesisHash, hashEntry, packEntry, unpackEntry } from './entry.js'
export { apply } from './replay.js'
export * from './types.js'
