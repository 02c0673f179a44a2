/** The inside of a worker: one contender and its callers, told by the harness what to do next. */
import { runCallers, type Turn, type TurnResult } from './callers.js'
import type { Contender, MemoryUse, Place } from './contender.js'

export interface Requests {
  open: { ask: { contender: string; place: Place }; answer: undefined }
  seed: { ask: { wallets: number }; answer: undefined }
  run: { ask: Turn; answer: TurnResult }
  memory: { ask: undefined; answer: MemoryUse | null }
  close: { ask: undefined; answer: undefined }
}

export interface Request {
  readonly type: keyof Requests
  readonly ask: unknown
}

export type Answer = { readonly result: unknown } | { readonly error: string }

export function serveAsWorker(make: (name: string, place: Place) => Contender): void {
  let contender: Contender | undefined
  const serve = async ({ type, ask }: Request): Promise<unknown> => {
    if (type === 'open') {
      const { contender: name, place } = ask as Requests['open']['ask']
      contender = make(name, place)
      return contender.open()
    }
    if (!contender) throw new Error(`Expected open before ${type}`)
    switch (type) {
      case 'seed':
        return contender.seed((ask as Requests['seed']['ask']).wallets)
      case 'run':
        return runCallers(contender, ask as Turn)
      case 'memory':
        return (await contender.measureMemory?.()) ?? null
      case 'close':
        return contender.close()
    }
  }
  const send = (answer: Answer) => process.send?.(answer)
  process.on('message', (request: Request) => {
    serve(request).then(
      (result) => send({ result }),
      (error: Error) => send({ error: error.stack ?? String(error) }),
    )
  })
  // Ctrl-C reaches everybody at the terminal; the harness decides, and a worker ends when it does.
  process.on('SIGINT', () => {})
  process.once('disconnect', () => process.exit(0))
}
