import type { Registry } from 'prom-client'
import { Type } from 'typebox'
import type { Routes } from './index.js'

export const metricsRoutes: Routes<{ registry: Registry }> = async (app, { registry }) => {
  const schema = {
    operationId: 'getMetrics',
    summary: 'Metrics for Prometheus',
    tags: ['operating'],
    response: { 200: Type.String({ description: 'Text exposition format' }) },
  }
  app.get('/metrics', { schema }, async (_request, reply) => {
    const text = await registry.metrics()
    return reply.type(registry.contentType).serializer(String).send(text)
  })
}
