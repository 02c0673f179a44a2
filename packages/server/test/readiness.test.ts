import type { Telemetry } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { Readiness } from '../src/health/index.js'

const silent: Telemetry = {}
const never = () => new Promise<void>(() => {})

describe('readiness', () => {
  it('is ready when every dependency answers', async () => {
    const readiness = new Readiness(
      { redis: async () => {}, postgres: async () => {} },
      { timeoutMs: 100, telemetry: silent },
    )
    expect(await readiness.report()).toEqual({
      ready: true,
      degraded: false,
      checks: {
        redis: { status: 'up', durationMs: expect.any(Number) },
        postgres: { status: 'up', durationMs: expect.any(Number) },
      },
    })
  })

  it('names what is away, and waits no longer than it may for what does not answer', async () => {
    const readiness = new Readiness({ redis: never, postgres: async () => {} }, { timeoutMs: 30, telemetry: silent })
    const startedAt = performance.now()
    const { ready, checks } = await readiness.report()
    expect([ready, checks.redis?.status, checks.postgres?.status]).toEqual([false, 'away', 'up'])
    expect(performance.now() - startedAt).toBeLessThan(20_000)
  })

  it('is ready without what it can do without, and says so', async () => {
    const away = async () => {
      throw new Error('refused')
    }
    const options = { timeoutMs: 100, dispensable: ['redis'], telemetry: silent }
    const withoutRedis = new Readiness({ redis: away, postgres: async () => {} }, options)
    expect(await withoutRedis.report()).toMatchObject({
      ready: true,
      degraded: true,
      checks: { redis: { status: 'away' } },
    })
    const withoutBoth = new Readiness({ redis: away, postgres: away }, options)
    expect(await withoutBoth.report()).toMatchObject({ ready: false, degraded: false })
    withoutRedis.stop()
    expect(await withoutRedis.report()).toMatchObject({ ready: false, degraded: false })
  })

  it('asks once, however many ask it', async () => {
    let asked = 0
    const check = async () => {
      asked += 1
    }
    const readiness = new Readiness({ redis: check }, { timeoutMs: 100, telemetry: silent })
    await Promise.all(Array.from({ length: 100 }, () => readiness.report()))
    expect(asked).toBe(1)
    await readiness.report()
    expect(asked).toBe(2)
  })

  it('logs a change with its reason, once, and the way back', async () => {
    const events: unknown[] = []
    const telemetry: Telemetry = { log: (level, event, facts) => events.push([level, event, facts]) }
    let away = true
    const check = async () => {
      if (away) throw new Error('connection refused')
    }
    const readiness = new Readiness({ redis: check }, { timeoutMs: 100, telemetry })
    await readiness.report()
    await readiness.report()
    away = false
    expect((await readiness.report()).ready).toBe(true)
    await readiness.report()
    expect(events).toEqual([
      ['warn', 'dependency_away', { dependency: 'redis', reason: 'connection refused' }],
      ['info', 'dependency_back', { dependency: 'redis' }],
    ])
  })

  it('is not ready once it is stopping', async () => {
    const readiness = new Readiness({ redis: async () => {} }, { timeoutMs: 100, telemetry: silent })
    readiness.stop()
    expect(await readiness.report()).toMatchObject({ ready: false, checks: { redis: { status: 'up' } } })
  })
})
