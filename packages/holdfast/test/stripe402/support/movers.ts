/** Starts processes that move money, and kills them in the middle of it. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { expect, vi } from 'vitest'
import type { LedgerStore, Movement } from '../../../src/stripe402/index.js'

export interface MoverOrder {
  readonly store:
    | { readonly type: 'postgres'; readonly url: string }
    | { readonly type: 'holdfast'; readonly redis: string; readonly postgres: string }
  readonly clients: readonly string[]
}

export type MoverTold =
  | { readonly type: 'ready' }
  | { readonly type: 'begin'; readonly movement: Movement }
  | { readonly type: 'end'; readonly id: string; readonly balance: number | null }

const FOLDER = fileURLToPath(new URL('../../../../../node_modules/.cache/holdfast', import.meta.url))

export class Movers {
  readonly begun = new Map<string, Movement>()
  readonly answered = new Map<string, number | null>()
  readonly #file: string

  private constructor(file: string) {
    this.#file = file
  }

  /** They run the sources, like the tests do. */
  static async prepare(): Promise<Movers> {
    mkdirSync(FOLDER, { recursive: true })
    const outfile = join(FOLDER, `ledger-mover-${process.pid}-${Date.now()}.mjs`)
    await build({
      entryPoints: [fileURLToPath(new URL('ledger-mover.ts', import.meta.url))],
      outfile,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      packages: 'external',
      logLevel: 'warning',
    })
    return new Movers(outfile)
  }

  /** Starts one and kills it once it has begun that many: some of them are under way then. */
  async killOne(order: MoverOrder, afterMoves: number): Promise<void> {
    const child = fork(this.#file, [JSON.stringify(order)], { serialization: 'json', stdio: 'ignore' })
    const exited = once(child, 'exit')
    let begun = 0
    child.on('message', (told: MoverTold) => {
      if (told.type === 'end') this.answered.set(told.id, told.balance)
      if (told.type !== 'begin') return
      this.begun.set(told.movement.id, told.movement)
      begun += 1
      if (begun >= afterMoves) child.kill('SIGKILL')
    })
    const [, signal] = await exited
    if (signal !== 'SIGKILL') throw new Error('It ended before it was killed')
  }

  /** Both or neither: every move is recorded and in the balance, or nowhere; and what was answered is as it was answered. */
  async judge(store: LedgerStore, clients: readonly string[], balanceBefore: number): Promise<{ unknown: number }> {
    // What a process had handed to the kernel arrives after its death.
    await vi.waitFor(() => this.#compare(store, clients, balanceBefore), { timeout: 20_000 })
    const open = [...this.begun.values()].filter(({ id }) => !this.answered.has(id))
    // Asked for again, those without an answer are done once, and those that were answered are answered the same.
    for (const movement of open) {
      const balance = await store.move(movement)
      expect(await store.move(movement)).toBe(balance)
    }
    for (const [id, balance] of this.answered) {
      if (balance === null) continue
      expect(await store.move(this.begun.get(id) as Movement)).toBe(balance)
    }
    return { unknown: open.length }
  }

  async #compare(store: LedgerStore, clients: readonly string[], balanceBefore: number): Promise<void> {
    const recorded = new Set<string>()
    for (const clientId of clients) {
      let balance = balanceBefore
      for (let after: string | undefined; ; ) {
        const page = await store.listTransactions(clientId, { limit: 1_000, ...(after !== undefined && { after }) })
        for (const { id, type, amount } of page.transactions) {
          expect(this.begun.get(id), `what ${id} was`).toMatchObject({ clientId, type, amount })
          expect(recorded.has(id), `${id} is recorded twice`).toBe(false)
          recorded.add(id)
          balance += type === 'topup' ? amount : -amount
        }
        if (page.next === null) break
        after = page.next
      }
      expect((await store.getClient(clientId))?.balance, 'the balance is what was recorded').toBe(balance)
    }
    for (const [id, balance] of this.answered) expect([id, recorded.has(id)]).toEqual([id, balance !== null])
  }

  close(): void {
    rmSync(this.#file, { force: true })
  }
}
