import { setTimeout as sleep } from 'node:timers/promises'
import type { SaleState } from 'holdfast'
import { untilSignal } from '../../lifecycle/signals.js'
import { EXIT, type Run, type Terminal } from '../command.js'
import { ServerClient } from '../server-client.js'
import { withAnswer } from '../with-answer.js'
import { salePath } from './sales.js'
import { addSample, isOver, lineOf, ratesOf, type Sample, screenOf } from './view.js'

/** Often enough to be called live. It reads a row of each bucket: nothing that a sale would notice. */
const LOOK_MS = 500
const HINT = 'Ctrl-C stops looking; the sale goes on'

/** How a sale goes: drawn in place on a terminal, a line for each change elsewhere. Until it is over, or Ctrl-C. */
export const watch: Run = ({ config }, terminal) =>
  withAnswer(config, terminal, async () => {
    const stop = new AbortController()
    void untilSignal().then(() => stop.abort())
    const show = config.json ? asJson(terminal) : (onScreen(terminal) ?? asLines(terminal))
    const client = new ServerClient(config, { ...terminal, progress: (text) => show(samples, text) })
    let samples: Sample[] = []
    for (;;) {
      const sale = await client.ask<SaleState>({ method: 'GET', path: salePath(config) })
      const latest = { at: Date.now(), sale }
      samples = addSample(samples, latest)
      const over = isOver(latest)
      show(samples, over || stop.signal.aborted ? '' : HINT)
      if (over || stop.signal.aborted) return EXIT.ok
      await sleep(LOOK_MS, undefined, { signal: stop.signal }).catch(() => {})
      if (stop.signal.aborted) return EXIT.ok
    }
  })

type Show = (samples: readonly Sample[], note: string) => void

/** Null: nobody looks. */
function onScreen({ screen, environment }: Terminal): Show | null {
  if (!screen) return null
  const { LC_ALL, LC_CTYPE, LANG } = environment
  const unicode = /utf-?8/i.test(LC_ALL || LC_CTYPE || LANG || '')
  let drawn = 0
  return (samples, note) => {
    if (samples.length === 0) return
    const lines = screenOf(samples, { columns: screen.columns(), unicode, note })
    // Up to where it began, and each line anew, the old one wiped: nothing flickers, and what stands above stays.
    const up = drawn > 0 ? `\u001b[${drawn}A` : ''
    screen.write(up + lines.map((line) => `\r\u001b[2K${line}\n`).join(''))
    drawn = lines.length
  }
}

/** A line for each change, and where something is wrong a word of it on standard error. */
function asLines({ print, progress }: Terminal): Show {
  const isNew = changes()
  return (samples, note) => {
    if (note !== HINT && note !== '') return progress(note)
    if (isNew(samples)) print(lineOf(samples))
  }
}

function asJson({ print, progress }: Terminal): Show {
  const isNew = changes()
  return (samples, note) => {
    if (note !== HINT && note !== '') return progress(note)
    const latest = samples.at(-1) as Sample
    if (isNew(samples)) print(JSON.stringify({ at: latest.at, ...latest.sale, perSecond: ratesOf(samples) }))
  }
}

/** Whether the latest is other than what was told before. */
function changes(): (samples: readonly Sample[]) => boolean {
  let told = ''
  return (samples) => {
    const { sale, ...latest } = samples.at(-1) as Sample
    const now = JSON.stringify([sale, isOver({ sale, ...latest }), latest.at >= sale.startsAt])
    const isNew = now !== told
    told = now
    return isNew
  }
}
