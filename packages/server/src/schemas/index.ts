export * from './answers.js'
export * from './flags.js'
export * from './parts.js'
export { ProblemSchema } from './problem.js'
