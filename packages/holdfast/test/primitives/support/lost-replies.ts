import type { Primitives } from '../../../src/primitives/index.js'
import type { ScriptRunner } from '../../../src/redis/index.js'

/** The same primitives, but the first reply to each script that may be sent again is lost: it runs twice, and the second answer counts. */
export function losingReplies({ context }: Primitives): Primitives {
  const runner: ScriptRunner = {
    async run(script, keys, args) {
      if (script.resend === 'safe') await context.runner.run(script, keys, args)
      return context.runner.run(script, keys, args)
    },
  }
  return { context: { ...context, runner } } as Primitives
}
