import type { Place } from '../redis/index.js'
import { Lane } from './lane.js'

/** What this process knows of the wallets that it has to do with. */
export class Lanes {
  readonly #max: number
  readonly #lanes = new Map<string, Lane>()
  /** States of epochs up to this one are past: of another timeline, or of before Postgres was put back. */
  #floor = 0
  /** With so many it is time to forget some. */
  #fullAt: number

  constructor(max: number) {
    this.#max = max
    this.#fullAt = max
  }

  of(place: Place): Lane {
    let lane = this.#lanes.get(place.walletKey)
    if (lane) return lane
    if (this.#lanes.size >= this.#fullAt) this.#forgetIdle()
    lane = new Lane(place)
    lane.distrust(this.#floor + 1)
    this.#lanes.set(place.walletKey, lane)
    return lane
  }

  raiseFloor(floor: number): void {
    if (floor <= this.#floor) return
    this.#floor = floor
    for (const lane of this.#lanes.values()) lane.distrust(floor + 1)
  }

  /** What is told about an idle wallet is only a help: without it the script returns a little more. */
  #forgetIdle(): void {
    let spare = this.#max / 4
    for (const [key, lane] of this.#lanes) {
      if (spare <= 0) break
      if (!lane.idle) continue
      this.#lanes.delete(key)
      spare -= 1
    }
    // Looking through 50,000 that are busy takes 480 µs: not for each new one, but once for a quarter more.
    this.#fullAt = Math.max(this.#max, this.#lanes.size + this.#max / 4)
  }
}
