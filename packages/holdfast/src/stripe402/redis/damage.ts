import { HoldfastError } from '../../errors/index.js'

/** Reports damage that is met on the way; anything else is no business of who goes on. */
export async function damageOf(act: () => Promise<unknown>, report: (error: HoldfastError) => void): Promise<void> {
  try {
    await act()
  } catch (error) {
    if (!HoldfastError.is(error, 'client_damaged')) throw error
    report(error)
  }
}
