export { type CommandName, type Config, OPTIONS, type Option } from './options.js'
export { ConfigError, type Flags, type ReadConfig, readConfig } from './read.js'
