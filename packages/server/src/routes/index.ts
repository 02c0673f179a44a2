import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type { FastifyBaseLogger, FastifyPluginAsync, RawServerDefault } from 'fastify'

/** A group of routes. What they need comes as options: no route reaches for anything by itself. */
export type Routes<Options extends object = Record<never, never>> = FastifyPluginAsync<
  Options,
  RawServerDefault,
  TypeBoxTypeProvider,
  FastifyBaseLogger
>

export { type ApiOptions, apiRoutes } from './api.js'
export { describeApi, docsRoutes } from './docs.js'
export { errorRoutes } from './errors.js'
export { healthRoutes } from './health.js'
export { metricsRoutes } from './metrics.js'
