import { expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../../test/servers.js'
import { Holdfast } from '../../src/index.js'
import { NO_REDIS } from './support/paths.js'

it('serves one wallet from two processes of which only one sees Redis', async () => {
  const postgres = await freshDatabase()
  const engine = { sweepEveryMs: 600_000 }
  const sees = await Holdfast.connect({ redis: await freshRedis(), postgres, engine })
  const blind = await Holdfast.connect({ redis: NO_REDIS, postgres, engine })
  await sees.wallet('w').open({ currency: 'usd' })
  await sees.wallet('w').credit(120, { key: 'in' })

  const calls = [sees, blind].flatMap((hf, process) =>
    Array.from({ length: 4 }, async (_, caller) => {
      const told: string[] = []
      for (let i = 0; i < 20; i += 1) {
        const key = `${process}-${caller}-${i}`
        const outcome = await hf
          .wallet('w')
          .debit(1, { key })
          .then(
            ({ entry }) => `${entry.key} ${entry.hash}`,
            ({ code }) => code as string,
          )
        told.push(outcome)
      }
      return told
    }),
  )
  const told = (await Promise.all(calls)).flat()
  const done = told.filter((outcome) => outcome !== 'insufficient_funds')
  const entries = await sees.wallet('w').entries({ after: 1, limit: 1_000 })
  expect(done.sort()).toEqual(entries.map(({ key, hash }) => `${key} ${hash}`).sort())
  expect(done).toHaveLength(120)
  expect(await blind.wallet('w').get()).toMatchObject({ available: 0, seq: 121 })
  await Promise.all([sees.close(), blind.close()])
})
