import type { Lease } from './lease.js'

/** All leases that are held over the same connections, whoever has taken them. */
export class HeldLeases extends Set<Lease> {
  #isClosed = false

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Without connections nothing can be renewed: work under a lock is told so. Others can have it when its time is over. */
  close(): void {
    this.#isClosed = true
    for (const lease of this) lease.lose('closed')
  }
}
