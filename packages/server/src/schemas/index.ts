export * from './answers.js'
export * from './parts.js'
export { ProblemSchema } from './problem.js'
