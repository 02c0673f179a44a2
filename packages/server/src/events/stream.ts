import type { FeedRow } from 'holdfast'
import type { LiveFeed } from './live-feed.js'
import { behindItem, behindRow, isBehind, type Position, type PositionText } from './position.js'
import { type Subscription, toldOf } from './subscription.js'

export interface StreamSettings {
  readonly live: LiveFeed
  readonly text: PositionText
  readonly subscription: Subscription
  readonly from: Position
  /** Ends the stream: between two events, never within one. */
  readonly signal: AbortSignal
  /** Without news for so long a sign of life is sent. */
  readonly heartbeatMs: number
  /** How long a reader may take nothing before it is given up. */
  readonly stallMs: number
  readonly onStall: () => void
  readonly onSent: (count: number) => void
}

/** What a client waits before it connects again. */
const RETRY_MS = 1_000

/**
 * One stream of server-sent events. It takes what comes after its position, from memory or from Postgres, and only when what it gave before
 * was taken: a slow reader has one page in memory, whatever happens meanwhile.
 *
 * The id of an event stands with the last that an item of the feed comes to. So who is cut off between two of them gets both again.
 */
export async function* streamOf(settings: StreamSettings): AsyncGenerator<string> {
  const { live, text, subscription, signal, heartbeatMs } = settings
  const news = new News(signal)
  let at = settings.from
  let toldPosition = at.position
  const deaf = live.listen({
    subscription,
    wake: (before) => news.wake(before),
    end: () => news.end(),
  })
  try {
    yield `retry: ${RETRY_MS}\nid: ${text.write(at)}\n\n`
    while (!news.over) {
      const { rows, end } = await live.read(subscription, at)
      for (const row of rows) {
        const [chunk, count] = render(settings, row, row.position === at.position ? at : null)
        at = behindRow(row)
        if (chunk === '') continue
        toldPosition = row.position
        if (news.over) return
        yield* patiently(settings, chunk)
        settings.onSent(count)
      }
      if (end > at.position) at = behindRow({ position: end, mark: 0 })
      if (at.position < live.position || news.over) continue
      const before = await news.next(heartbeatMs)
      if (before !== null) {
        // What lies between is about others.
        if (before > at.position) at = behindRow({ position: before, mark: 0 })
        continue
      }
      if (news.over) return
      at = behindRow({ position: Math.max(at.position, live.position), mark: 0 })
      // Whoever is told of nothing has to come forward all the same: the feed does not reach back for ever.
      toldPosition = Math.max(toldPosition, live.head.position)
      const id = toldPosition === live.head.position ? `id: ${text.write(behindRow(live.head))}\n` : ''
      yield* patiently(settings, `: \n${id}\n`)
    }
  } finally {
    deaf()
  }
}

async function* patiently({ stallMs, onStall }: StreamSettings, chunk: string): AsyncGenerator<string> {
  const timer = setTimeout(onStall, stallMs)
  try {
    yield chunk
  } finally {
    clearTimeout(timer)
  }
}

function render({ text, subscription }: StreamSettings, row: FeedRow, from: Position | null): [string, number] {
  let chunk = ''
  let count = 0
  for (const item of row.items) {
    if (from && isBehind(from, item)) continue
    const events = toldOf(subscription, row, item)
    count += events.length
    for (const [place, event] of events.entries()) {
      if (place === events.length - 1) chunk += `id: ${text.write(behindItem(row, item))}\n`
      chunk += `event: ${event.event}\ndata: ${JSON.stringify(event)}\n\n`
    }
  }
  return [chunk, count]
}

/** Waits for the next that concerns one, for the end, or for a while. */
class News {
  over = false
  #waiting: ((before: number | null) => void) | undefined

  constructor(signal: AbortSignal) {
    if (signal.aborted) this.end()
    else signal.addEventListener('abort', () => this.end(), { once: true })
  }

  /** The position before the news; null: there was none for so long, or it is over. */
  next(ms: number): Promise<number | null> {
    if (this.over) return Promise.resolve(null)
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#tell(null), ms)
      this.#waiting = (before) => {
        clearTimeout(timer)
        resolve(before)
      }
    })
  }

  /** Whoever is busy looks by itself before it waits again. */
  wake(before: number): void {
    this.#tell(before)
  }

  end(): void {
    this.over = true
    this.#tell(null)
  }

  #tell(before: number | null): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.(before)
  }
}
