import { PostgresJournal } from '../../../src/journal/index.js'

/** What goes on only when it is let. */
export class Gate {
  #opened: Promise<void> = Promise.resolve()
  #open: () => void = () => {}

  shut(): void {
    this.#opened = new Promise((resolve) => {
      this.#open = resolve
    })
  }

  open(): void {
    this.#open()
  }

  get opened(): Promise<void> {
    return this.#opened
  }
}

/** Postgres, to which appends are on their way while the gate is shut. */
export class GatedJournal extends PostgresJournal {
  readonly appends = new Gate()

  override async append(...asked: Parameters<PostgresJournal['append']>): ReturnType<PostgresJournal['append']> {
    await this.appends.opened
    return super.append(...asked)
  }
}
