import { HoldfastError } from '../../../src/index.js'

/** What was on its way to Postgres when the operator acted may still find that nobody has: then a process stands for a moment longer. */
export async function onceLifted<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (!HoldfastError.is(error, 'reconcile_required')) throw error
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}
