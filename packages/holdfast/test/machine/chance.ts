/** Numbers by chance that are the same for the same seed (mulberry32). */
export class Chance {
  #state: number

  constructor(seed: number) {
    this.#state = Math.imul(seed, 2_654_435_761)
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let bits = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32
  }

  /** Both ends included. */
  int(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1))
  }

  happens(probability: number): boolean {
    return this.next() < probability
  }

  of<T>(list: readonly T[]): T {
    return list[this.int(0, list.length - 1)] as T
  }

  weighted<T extends string>(weights: Readonly<Record<T, number>>): T {
    const kinds = Object.entries<number>(weights) as [T, number][]
    let left = this.next() * kinds.reduce((sum, [, weight]) => sum + weight, 0)
    const found = kinds.find(([, weight]) => {
      left -= weight
      return left < 0
    })
    return (found ?? (kinds[0] as [T, number]))[0]
  }
}
