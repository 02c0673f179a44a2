export type { CommandName } from './command-names.js'
export type { Option } from './option.js'
export { type Config, OPTIONS } from './options.js'
export { ConfigError, type Flags, type ReadConfig, readConfig } from './read.js'
