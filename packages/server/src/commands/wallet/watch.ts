import { setTimeout as sleep } from 'node:timers/promises'
import type { Entry } from 'holdfast'
import { untilSignal } from '../../lifecycle/signals.js'
import { EXIT, type Run } from '../command.js'
import { ServerClient } from '../server-client.js'
import { withAnswer } from '../with-answer.js'
import { readWallet } from './reading.js'
import { entryHeading, entryLine, walletTable } from './texts.js'
import { walletPath } from './wallet-path.js'

/** Often enough to be called live, seldom enough to be forgotten in a window. */
const LOOK_MS = 500
const PAGE = 1_000

/**
 * Entries as they come, from the journal and in its order: none is missed and none is shown twice, also over a restart of the server.
 * Until Ctrl-C.
 */
export const watch: Run = ({ config }, terminal) =>
  withAnswer(config, terminal, async () => {
    const client = new ServerClient(config, terminal)
    const stop = new AbortController()
    void untilSignal().then(() => stop.abort())
    const wallet = await readWallet(config, terminal)
    let after = config.after ?? wallet.seq
    if (!config.json) terminal.print(`${walletTable([wallet])}\n\n${entryHeading()}`)
    while (!stop.signal.aborted) {
      const path = `${walletPath(config)}/entries?after=${after}&limit=${PAGE}`
      const { data } = await client.ask<{ data: Entry[] }>({ method: 'GET', path })
      for (const entry of data) {
        terminal.print(config.json ? JSON.stringify(entry) : entryLine(entry))
        after = entry.seq
      }
      if (data.length < PAGE) await sleep(LOOK_MS, undefined, { signal: stop.signal }).catch(() => {})
    }
    return EXIT.ok
  })
