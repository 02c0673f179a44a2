import { fastifySwagger } from '@fastify/swagger'
import { fastifySwaggerUi } from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import type { Routes } from './index.js'

/** Before the routes: it collects them as they are added. */
export async function describeApi(app: FastifyInstance, version: string): Promise<void> {
  await app.register(fastifySwagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Holdfast',
        version,
        description:
          'Balances, holds and limited stock that are never double-spent, oversold or lost. Amounts are integers in the ' +
          "wallet's smallest unit. Errors are `application/problem+json` with a `code` to decide by.",
        license: { name: 'MIT', identifier: 'MIT' },
      },
      tags: [
        { name: 'health', description: 'For load balancers and orchestrators' },
        { name: 'operating', description: 'For whoever runs the server' },
      ],
    },
  })
}

/** The page's scripts and styles come from here and so does what it calls; its icons stand in its styles as data. */
const DOCS_CSP =
  "default-src 'none'; base-uri 'none'; connect-src 'self'; font-src 'self' data:; frame-ancestors 'none'; " +
  "img-src 'self' data:; script-src 'self'; style-src 'self'"

/** The description for programs and for people. Everything the page loads comes from here: it works without the internet. */
export const docsRoutes: Routes = async (app) => {
  const schema = {
    operationId: 'getOpenApi',
    summary: 'This description, as OpenAPI 3.1',
    tags: ['operating'],
  }
  app.get('/openapi.json', { schema }, async (_request, reply) =>
    reply.type('application/json; charset=utf-8').serializer(JSON.stringify).send(app.swagger()),
  )
  await app.register(fastifySwaggerUi, {
    routePrefix: '/docs',
    staticCSP: true,
    transformStaticCSP: () => DOCS_CSP,
    // The bare layout: no bar with somebody's logo, and no field to load a description from elsewhere.
    uiConfig: { layout: 'BaseLayout', validatorUrl: null, docExpansion: 'list', deepLinking: true },
    theme: { title: 'Holdfast API' },
  })
}
