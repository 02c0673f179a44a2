/**
 * A process that uses the product: `Holdfast.connect`, a few callers, and a file in which they write down what they see. It asks what a
 * dead one before it had no answer to, then goes on with a story of its own until it is told that it is enough.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type ConnectOptions, Holdfast } from 'holdfast'
import { type Asked, Recorder } from './history.js'
import { perform } from './perform.js'
import { Story } from './story.js'

export interface WorkerOrder {
  readonly name: string
  readonly seed: number
  readonly callers: number
  readonly wallets: readonly string[]
  readonly connect: ConnectOptions
  readonly historyFile: string
  /** What somebody else asked before and got no answer to. */
  readonly inherited: readonly Asked[]
}

/** A caller who got no answer comes again after so long: more than a call may take to be decided. */
const RETRY_AFTER_MS = 300
const TRIES_MAX = 60

const order = JSON.parse(process.argv[2] as string) as WorkerOrder
const recorder = new Recorder(order.historyFile)
const counts: Record<string, number> = {}
const note = (name: string, by = 1) => {
  counts[name] = (counts[name] ?? 0) + by
}
const hf = await Holdfast.connect({
  ...order.connect,
  telemetry: {
    count: (metric, labels, by) => {
      const what = Object.values(labels ?? {}).join('_')
      note(what === '' ? metric : `${metric.replace(/^holdfast_|_total$/g, '')}_${what}`, by)
    },
    log: (_level, event) => note(`log_${event}`),
  },
})
const story = new Story(order.name, order.seed, order.wallets)
let enough = false

/** Until there is an answer: the same key, again and again. */
async function settle(asked: Asked, again: boolean): Promise<void> {
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const call = recorder.begin(asked)
    const answer = await perform(hf, asked, again || tries > 0)
    recorder.end(call, answer)
    if (answer.type !== 'unknown') return story.hear(asked, answer)
    await sleep(RETRY_AFTER_MS)
  }
}

async function caller(): Promise<void> {
  while (!enough) {
    await settle(story.next(), false)
    await sleep(story.pauseMs())
  }
}

const telling = setInterval(() => recorder.counts(counts), 200)
process.once('message', () => {
  enough = true
})
// A parent that is gone wants nothing more.
process.once('disconnect', () => process.exit(0))
process.send?.('ready')

await Promise.all(order.inherited.map((asked) => settle(asked, true)))
await Promise.all(Array.from({ length: order.callers }, caller))
clearInterval(telling)
await hf.close()
recorder.counts(counts)
recorder.close()
process.disconnect()
