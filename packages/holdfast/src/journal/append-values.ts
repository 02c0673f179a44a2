import type { Entry } from '../machine/index.js'
import { ArrayWriter, ELEMENT, LENGTH_BYTES } from './array-writer.js'
import { deadlineOf, limitAfter, type Run, statusAfter } from './runs.js'

const RUN_NUMBERS = 13
const ENTRY_NUMBERS = 15
const ENTRY_TEXTS = 6
/** Of text in UTF-8: a unit of a JavaScript string takes at most three bytes. */
const UNIT_BYTES_MAX = 3

/**
 * The parameters of `append`, in the order of its comment; null when Postgres can't take something in there.
 *
 * CPU an entry in Postgres, 100 a statement: 22 arrays of text for the columns of an entry cost 4 µs to parse and 2 µs to unnest,
 * these cost a little over 1 µs together (shares of a profile). To build them costs Node 1.9 µs, text 3.1 µs. One JSON parameter with `json_to_recordset` was dearer than either.
 */
export function appendValues(runs: readonly Run[]): Buffer[] | null {
  const values = new AppendWriter(runs)
  for (const [index, run] of runs.entries()) {
    values.addRun(run)
    for (const entry of run.entries) values.addEntry(index + 1, entry)
  }
  return values.end()
}

class AppendWriter {
  readonly #runWallet: ArrayWriter
  readonly #runNumber: ArrayWriter
  readonly #runHash: ArrayWriter
  readonly #runStatus: ArrayWriter
  readonly #entryNumber: ArrayWriter
  readonly #entryHash: ArrayWriter
  readonly #entryText: ArrayWriter
  #entries = 0

  constructor(runs: readonly Run[]) {
    const rows = runs.length
    let entries = 0
    let runHashBytes = 0
    let entryHashBytes = 0
    let textUnits = 0
    let refBytes = 0
    for (const run of runs) {
      entries += run.entries.length
      refBytes += LENGTH_BYTES + run.ref.length
      for (const { kind, key, hold, counter, params, metadata, hash, prev } of run.entries) {
        runHashBytes += 2 * LENGTH_BYTES + prev.length + hash.length
        entryHashBytes += LENGTH_BYTES + hash.length
        textUnits += kind.length + key.length + hold.length + counter.length + params.length + metadata.length
      }
    }
    this.#runWallet = new ArrayWriter(ELEMENT.uuid, rows, 0, refBytes)
    this.#runNumber = new ArrayWriter(ELEMENT.bigint, rows, RUN_NUMBERS, ArrayWriter.numberBytes(rows * RUN_NUMBERS))
    this.#runHash = new ArrayWriter(ELEMENT.bytea, rows, 2, runHashBytes)
    this.#runStatus = new ArrayWriter(ELEMENT.text, rows, 0, rows * (LENGTH_BYTES + 8))
    const numberBytes = ArrayWriter.numberBytes(entries * ENTRY_NUMBERS)
    this.#entryNumber = new ArrayWriter(ELEMENT.bigint, entries, ENTRY_NUMBERS, numberBytes)
    this.#entryHash = new ArrayWriter(ELEMENT.bytea, entries, 0, entryHashBytes)
    const textBytes = entries * ENTRY_TEXTS * LENGTH_BYTES + textUnits * UNIT_BYTES_MAX
    this.#entryText = new ArrayWriter(ELEMENT.text, entries, ENTRY_TEXTS, textBytes)
  }

  addRun(run: Run): void {
    const first = run.entries[0]
    const last = run.entries[run.entries.length - 1]
    if (!first || !last) throw new Error('A run has at least one entry')
    this.#runWallet.uuid(run.ref)
    const number = this.#runNumber
    number.number(first.epoch)
    number.number(first.seq - 1)
    number.number(first.available - first.availableDelta)
    number.number(first.reserved - first.reservedDelta)
    number.number(last.seq)
    number.number(last.at)
    number.number(last.available)
    number.number(last.reserved)
    number.number(last.due)
    number.number(last.since)
    number.number(deadlineOf(run))
    const limit = limitAfter(run)
    if (limit === null) number.null()
    else number.number(limit)
    number.number(this.#entries + 1)
    this.#runHash.bytes(first.prev)
    this.#runHash.bytes(last.hash)
    const status = statusAfter(run)
    if (status === null) this.#runStatus.null()
    else this.#runStatus.text(status)
  }

  /** What is 0 or empty by nature of the entry is left out: a null takes no room in a row. */
  addEntry(run: number, entry: Entry): void {
    this.#entries += 1
    const about = entry.hold !== ''
    const held = about && entry.holdExpiresAt > 0
    const number = this.#entryNumber
    number.number(run)
    number.number(entry.seq)
    number.number(entry.at)
    number.number(entry.amount)
    number.number(entry.availableDelta)
    number.number(entry.reservedDelta)
    number.number(entry.available)
    number.number(entry.reserved)
    numberIf(number, held, entry.holdAmount)
    numberIf(number, about, entry.holdCaptured)
    numberIf(number, held, entry.holdLeft)
    numberIf(number, held, entry.holdExpiresAt)
    numberIf(number, entry.holdRefunded > 0, entry.holdRefunded)
    numberIf(number, entry.of > 0, entry.of)
    numberIf(number, entry.of > 0, entry.ofRefunded)
    this.#entryHash.bytes(entry.hash)
    const text = this.#entryText
    text.text(entry.kind)
    text.text(entry.key)
    textUnlessEmpty(text, entry.hold)
    text.text(entry.counter)
    text.text(entry.params)
    textUnlessEmpty(text, entry.metadata)
  }

  end(): Buffer[] | null {
    const all = [
      this.#runWallet,
      this.#runNumber,
      this.#runHash,
      this.#runStatus,
      this.#entryNumber,
      this.#entryHash,
      this.#entryText,
    ]
    return all.every(({ fits }) => fits) ? all.map((one) => one.end()) : null
  }
}

function numberIf(writer: ArrayWriter, applies: boolean, value: number): void {
  if (applies) writer.number(value)
  else writer.null()
}

function textUnlessEmpty(writer: ArrayWriter, value: string): void {
  if (value === '') writer.null()
  else writer.text(value)
}
