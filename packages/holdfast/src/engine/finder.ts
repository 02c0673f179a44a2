import type { Attempt } from './attempt.js'
import { Batcher } from './batcher.js'
import type { Context } from './context.js'

interface Search {
  readonly attempt: Attempt
  /** The key is not in the journal. */
  readonly otherwise: () => void
}

/** Looks keys up in the journal: what is there is answered from there. */
export class Finder {
  readonly #context: Context
  readonly #batcher: Batcher<Search>

  constructor(context: Context) {
    this.#context = context
    this.#batcher = new Batcher(context, (searches) => this.#find(searches))
  }

  add(attempt: Attempt, otherwise: () => void): void {
    if (attempt.command.key === '') otherwise()
    else this.#batcher.add({ attempt, otherwise })
  }

  async #find(searches: readonly Search[]): Promise<[]> {
    const entries = await this.#context.journal.find(
      searches.map(({ attempt: { lane, command } }) => ({ ref: lane.place.ref, key: command.key })),
    )
    for (const [index, { attempt, otherwise }] of searches.entries()) {
      const entry = entries[index]
      if (!entry) {
        otherwise()
        continue
      }
      this.#context.telemetry.count?.('holdfast_recoveries_total', { what: 'replay' })
      this.#context.witnesses.noteFound(attempt.lane.place.ref, entry)
      attempt.recall(entry)
    }
    return []
  }
}
