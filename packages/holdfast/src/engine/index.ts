export type { Durability, Outcome } from './attempt.js'
export { type Clock, systemClock } from './clock.js'
export type { EngineOptions } from './context.js'
export { Engine, type EngineParts, type SubmitOptions } from './engine.js'
