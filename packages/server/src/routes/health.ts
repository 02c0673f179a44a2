import { HoldfastError } from 'holdfast'
import { Type } from 'typebox'
import type { Readiness } from '../health/index.js'
import { sendProblem } from '../http/problem.js'
import { oneOf, ProblemSchema, refTo } from '../schemas/index.js'
import type { Routes } from './index.js'

const CheckSchema = Type.Object({
  status: Type.Union([Type.Literal('up'), Type.Literal('away'), Type.Literal('stopped')]),
  durationMs: Type.Integer({ description: 'How long the answer took' }),
})
const ChecksSchema = Type.Record(Type.String(), CheckSchema, { description: 'By dependency: redis, postgres' })

const LiveSchema = Type.Object({
  status: Type.Literal('live'),
  version: Type.String(),
  uptimeSeconds: Type.Integer(),
})
const ReadySchema = Type.Object({
  status: oneOf(['ready', 'degraded'], 'degraded: Redis is away, and everything goes through Postgres, slower'),
  checks: ChecksSchema,
})
const NotReadySchema = Type.Intersect([refTo(ProblemSchema), Type.Object({ checks: ChecksSchema })], {
  description: 'Postgres is away or lacks what was acknowledged, or the server is stopping',
})

interface HealthRoutesOptions {
  readiness: Readiness
  version: string
}

export const healthRoutes: Routes<HealthRoutesOptions> = async (app, { readiness, version }) => {
  const live = {
    operationId: 'getLiveness',
    summary: 'Is the process alive?',
    description: 'Asks nobody else: a restart would not bring back a Redis or a Postgres that is away.',
    tags: ['health'],
    response: { 200: LiveSchema },
  }
  app.get('/health/live', { schema: live }, async () => ({
    status: 'live' as const,
    version,
    uptimeSeconds: Math.floor(process.uptime()),
  }))

  for (const [path, operationId] of [
    ['/health/ready', 'getReadiness'],
    ['/health', 'getHealth'],
  ] as const) {
    const ready = {
      operationId,
      summary: 'Can it do its work?',
      description:
        'Asks Redis and Postgres, each within a bounded time, and says which of them is away. Without Redis it still can: were it not ' +
        'ready then, a load balancer would take every server away that could have answered.',
      tags: ['health'],
      response: { 200: ReadySchema, 503: NotReadySchema },
    }
    app.get(path, { schema: ready }, async (_request, reply) => {
      const { ready, degraded, checks } = await readiness.report()
      if (ready) return { status: degraded ? ('degraded' as const) : ('ready' as const), checks }
      const away = Object.keys(checks).filter((name) => checks[name]?.status === 'away')
      const stopped = Object.values(checks).some(({ status }) => status === 'stopped')
      const problem = new HoldfastError(stopped ? 'reconcile_required' : 'unavailable')
      return sendProblem(reply, problem, { away, stopping: readiness.stopping, checks })
    })
  }
}
