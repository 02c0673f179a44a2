/** Runs a line of `curl` as it stands in the documentation or on a terminal, on machines that have no curl too. */

/** Words as a shell makes them: quotes, and variables except in single ones. */
function wordsOf(line: string, variables: Record<string, string>): string[] {
  const filled = (text: string) => text.replaceAll(/\$(\w+)/g, (_, name: string) => variables[name] ?? '')
  const words = line.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)
  return [...words].map(([word]) =>
    word.replaceAll(/'([^']*)'|"([^"]*)"|([^'"]+)/g, (_, single?: string, double?: string, bare?: string) =>
      single !== undefined ? single : filled(double ?? bare ?? ''),
    ),
  )
}

/** What it prints. Knows the flags that our lines have, and no other. */
export async function curl(line: string, variables: Record<string, string> = {}): Promise<string> {
  const [command, ...words] = wordsOf(line.replaceAll('\\\n', ' '), variables)
  if (command !== 'curl') throw new Error(`expected a line of curl, got ${line}`)
  const headers = new Headers()
  let method: string | undefined
  let url: string | undefined
  let body: string | undefined
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    if (word === '-X') method = words.shift()
    else if (word === '-d') body = words.shift()
    else if (word === '-H') headers.append(...((words.shift() as string).split(/: */, 2) as [string, string]))
    else if (word.startsWith('-') || url !== undefined) throw new Error(`curl: what is ${word}?`)
    else url = word
  }
  if (url === undefined) throw new Error('curl: no URL')
  const init = { method: method ?? (body === undefined ? 'GET' : 'POST'), headers, ...(body !== undefined && { body }) }
  return (await fetch(url, init)).text()
}
