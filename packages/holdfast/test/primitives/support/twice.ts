import type { Primitives } from '../../../src/primitives/index.js'

/** The same, but every call of a script that may be sent again runs twice and is answered by the second: as when a reply is lost. */
export function twice({ context }: Primitives): Primitives {
  const runner: typeof context.runner = {
    async run(script, keys, args) {
      if (script.resend === 'safe') await context.runner.run(script, keys, args)
      return context.runner.run(script, keys, args)
    },
  }
  return { context: { ...context, runner } } as Primitives
}
