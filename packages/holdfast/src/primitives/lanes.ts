/** Does something with each of many, so many at a time. Once one fails no other is begun. */
export async function inLanes<T>(all: readonly T[], width: number, act: (one: T) => Promise<void>): Promise<void> {
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < all.length) {
      const one = all[next] as T
      next += 1
      try {
        await act(one)
      } catch (error) {
        next = all.length
        throw error
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(width, all.length) }, lane))
}
