/** What commands that ask a server once have in common. */
import type { Config } from '../config/index.js'
import { EXIT, type Run } from './command.js'
import { type Request, ServerClient } from './server-client.js'
import { withAnswer } from './with-answer.js'

export interface Page<Item> {
  readonly data: readonly Item[]
  readonly next: string | number | null
}

/** Asks once, and shows what came. */
export const showing =
  <Answer>(
    request: (config: Config) => Omit<Request, 'method'> & Partial<Pick<Request, 'method'>>,
    text: (answer: Answer) => string,
  ): Run =>
  ({ config }, terminal) =>
    withAnswer(config, terminal, async () => {
      const answer = await new ServerClient(config, terminal).ask<Answer>({ method: 'GET', ...request(config) })
      terminal.print(config.json ? JSON.stringify(answer) : text(answer))
      return EXIT.ok
    })

/** Nothing of what was not given. */
export function query(parameters: Readonly<Record<string, string | number | boolean | undefined>>): string {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== false)
  const text = new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)])).toString()
  return text === '' ? '' : `?${text}`
}

export function pageText<Item>(
  { data, next }: Page<Item>,
  table: (items: readonly Item[]) => string,
  nothing: string,
): string {
  if (data.length === 0) return nothing
  return next === null ? table(data) : `${table(data)}\n\nThere are more: --after '${next}'`
}
