interface Ear {
  readonly ends: Set<() => void>
  readonly hear: () => void
}

const ears = new WeakMap<AbortSignal, Ear>()

/**
 * Runs `end` when the signal fires; the result takes that back. A signal may be that of thousands of calls at once: it has one listener for
 * all of them, since each listener is compared with all before it when it is added (20,000 take a second), and Node warns of more than ten.
 */
export function onAbort(signal: AbortSignal, end: () => void): () => void {
  const ear = ears.get(signal) ?? listen(signal)
  ear.ends.add(end)
  return () => {
    if (!ear.ends.delete(end) || ear.ends.size > 0) return
    ears.delete(signal)
    signal.removeEventListener('abort', ear.hear)
  }
}

function listen(signal: AbortSignal): Ear {
  const ends = new Set<() => void>()
  const hear = (): void => {
    for (const end of ends) end()
  }
  const ear = { ends, hear }
  ears.set(signal, ear)
  signal.addEventListener('abort', hear, { once: true })
  return ear
}
