import type { Config } from '../config/index.js'
import { EXIT, type Terminal } from './command.js'
import { Refusal } from './server-client.js'

/** A refusal is an answer too: for people on standard error, for scripts as the JSON that the server sent. */
export async function withAnswer(config: Config, terminal: Terminal, work: () => Promise<number>): Promise<number> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    terminal.complain(error.message)
    if (config.json) terminal.print(JSON.stringify(error.problem))
    return EXIT.failed
  }
}
