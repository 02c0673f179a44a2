/** Letters that may be wrong in a name for it to be taken for a known one, and one of it must be right. */
const WRONG_MAX = 2
/** What looks otherwise is no name, and may be anything, also somebody's. */
const NAME = /^\w{1,40}$/

/** A name that is none of the known ones, for a message, with the one that was most likely meant. */
export function misspelt(name: string, known: ReadonlySet<string>): string {
  if (!NAME.test(name)) return 'something else'
  return nearly(name, [...known]) ?? name
}

/** The same of a word that may be anything, also somebody's: only what is nearly one of the known ones is told. */
export function nearly(word: string, known: readonly string[]): string | undefined {
  if (!NAME.test(word)) return undefined
  const nearest = known
    .map((one) => ({ one, wrong: distance(word.toLowerCase(), one.toLowerCase()) }))
    .reduce((a, b) => (b.wrong < a.wrong ? b : a))
  return nearest.wrong <= WRONG_MAX && nearest.wrong < word.length ? `${word}: did you mean ${nearest.one}?` : undefined
}

/** How many letters have to be put in, left out or changed to make one of the other (Levenshtein). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const changed = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min((row[j] as number) + 1, (next[j - 1] as number) + 1, changed))
    }
    row = next
  }
  return row[b.length] as number
}
