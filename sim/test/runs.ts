import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Mutant } from '../mutants/index.js'
import { buildMutant } from '../mutate.js'

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/', import.meta.url))

export interface Report {
  schedulesPerSecond: number
  failures: { seed: number; problems: string[] }[]
  counts: Record<string, number>
}

/**
 * A simulator with the patches in it, as a program of its own: what it does to time and memory stays out of the test's process. No clock but its
 * own matters to it, so it leaves the machine to tests that wait for servers.
 */
export class Build {
  readonly #outfile = join(CACHE, `sim-${randomBytes(6).toString('hex')}.mjs`)

  static async of(mutant: Pick<Mutant, 'rule' | 'patches'>): Promise<Build> {
    const build = new Build()
    await buildMutant(mutant, build.#outfile)
    return build
  }

  async run(...args: string[]): Promise<{ code: number; output: string; report: Report }> {
    const json = `${this.#outfile}.${randomBytes(4).toString('hex')}.json`
    const child = spawn('nice', ['-n', '19', process.execPath, this.#outfile, '--json', json, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
    const [code] = (await once(child, 'close')) as [number]
    const report = JSON.parse(readFileSync(json, 'utf8')) as Report
    rmSync(json)
    return { code, output, report }
  }

  remove(): void {
    rmSync(this.#outfile, { force: true })
  }
}
