/** Runners of scripts that something happens to, as it happens to processes and connections. */
import type { Primitives } from '../../../src/primitives/index.js'
import { RedisUnavailable, type ScriptRunner } from '../../../src/redis/index.js'

type Run = ScriptRunner['run']

/** The same connections, but what runs scripts is this. */
export function withRunner(primitives: Primitives, wrap: (run: Run) => Run): Primitives {
  const { context } = primitives
  const run = wrap(context.runner.run.bind(context.runner))
  return { ...primitives, context: { ...context, runner: { run } } } as Primitives
}

/** Every call that may be sent again runs twice and is answered by the second, as when a reply is lost. */
export const stuttering = (primitives: Primitives): Primitives =>
  withRunner(primitives, (run) => async (script, keys, args) => {
    if (script.resend === 'safe') await run(script, keys, args)
    return run(script, keys, args)
  })

/** Counts calls by script, and can be cut off. */
export function counting(primitives: Primitives) {
  const counts: Record<string, number> = {}
  const line = { isCut: false }
  const counted = withRunner(primitives, (run) => (script, keys, args) => {
    if (line.isCut) return Promise.reject(new RedisUnavailable('not_executed', 'cut off'))
    counts[script.name] = (counts[script.name] ?? 0) + 1
    return run(script, keys, args)
  })
  return { primitives: counted, counts, line }
}

/** Answers of one script, once they are there, wait until they are let go. */
export function holding(primitives: Primitives, name: string) {
  let letGo = () => {}
  let arrived = () => {}
  const gate = new Promise<void>((resolve) => (letGo = resolve))
  const isHeld = new Promise<void>((resolve) => (arrived = resolve))
  const held = withRunner(primitives, (run) => async (script, keys, args) => {
    const answer = await run(script, keys, args)
    if (script.name !== name) return answer
    arrived()
    await gate
    return answer
  })
  return { primitives: held, isHeld, letGo }
}
