import type { Place } from '../redis/index.js'
import type { Sequencer } from '../sequencer/index.js'
import type { Telemetry } from '../telemetry/index.js'
import { Circuit } from './circuit.js'
import type { Clock } from './clock.js'

export interface GroupsParts {
  readonly sequencer: Sequencer
  readonly clock: Clock
  readonly telemetry: Telemetry
  /** On a Cluster only wallets of one shard can share a script call. */
  readonly cluster: boolean
  readonly patienceMs: number
  /** A key of the shard to try on whether Redis is there. */
  probeOf(shard: number): string
}

/** Wallets that Redis has in one place, and whether it is there: all of them, or on a Cluster those of a shard. */
export class Groups {
  readonly #parts: GroupsParts
  readonly #circuits = new Map<number, Circuit>()

  constructor(parts: GroupsParts) {
    this.#parts = parts
  }

  numberOf({ shard }: Pick<Place, 'shard'>): number {
    return this.#parts.cluster ? shard : 0
  }

  of(place: Pick<Place, 'shard'>): Circuit {
    const group = this.numberOf(place)
    const known = this.#circuits.get(group)
    if (known) return known
    const { clock, telemetry, sequencer, probeOf, patienceMs } = this.#parts
    const circuit = new Circuit(clock, {
      patienceMs,
      probe: () => sequencer.probe(probeOf(group)),
      onChange: (open) => {
        telemetry.log?.(open ? 'error' : 'info', open ? 'redis_away' : 'redis_back', { group })
        telemetry.count?.('holdfast_circuit_changes_total', { dependency: 'redis', to: open ? 'open' : 'closed' })
      },
    })
    this.#circuits.set(group, circuit)
    return circuit
  }

  /** That anybody has asked for yet. */
  get size(): number {
    return this.#circuits.size
  }

  get away(): number {
    let away = 0
    for (const { open } of this.#circuits.values()) if (open) away += 1
    return away
  }

  close(): void {
    for (const circuit of this.#circuits.values()) circuit.close()
  }
}
