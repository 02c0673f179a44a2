import { fastifySwagger } from '@fastify/swagger'
import { fastifySwaggerUi } from '@fastify/swagger-ui'
import type { FastifyContextConfig, FastifyInstance, FastifySchema } from 'fastify'
import { ERRORS, type ErrorCode } from 'holdfast'
import { Type } from 'typebox'
import { SCOPE_MEANINGS, SCOPES } from '../access/index.js'
import { PROBLEM_JSON } from '../http/problem.js'
import type { Routes } from './index.js'

/** What any request below `/v1` may be answered with. */
const EVERYWHERE: readonly ErrorCode[] = [
  'invalid_amount',
  'invalid_argument',
  'unauthenticated',
  'forbidden',
  'too_large',
  'rate_limited',
  'internal_error',
  'reconcile_required',
  'unavailable',
  'timeout',
]
const WITH_KEY: readonly ErrorCode[] = ['key_required', 'idempotency_conflict']

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
      components: {
        securitySchemes: {
          bearer: {
            type: 'http',
            scheme: 'bearer',
            description:
              'An API key (`hf_…`) or a wallet token (`hft_…`). ' +
              `Scopes: ${SCOPES.map((scope) => `\`${scope}\` ${SCOPE_MEANINGS[scope]}`).join('; ')}.`,
          },
        },
      },
      tags: [
        { name: 'wallets', description: 'Balances' },
        { name: 'holds', description: 'Money set aside until it is settled, released, or its time is over' },
        { name: 'sessions', description: 'Metered use: by the minute or by the unit' },
        { name: 'entries', description: 'The journal of a wallet' },
        { name: 'sales', description: 'Limited stock: who comes first, and never one too many' },
        { name: 'transfers', description: 'Between wallets' },
        { name: 'batch', description: 'Many operations in one request' },
        { name: 'tokens', description: 'For browsers' },
        { name: 'events', description: 'What happens, told as it happens' },
        { name: 'webhooks', description: 'Events, told to an address' },
        { name: 'flags', description: 'Feature flags' },
        { name: 'health', description: 'For load balancers and orchestrators' },
        { name: 'operating', description: 'For whoever runs the server' },
      ],
    },
    transformObject: (document) =>
      withOptionalBodies('openapiObject' in document ? document.openapiObject : document.swaggerObject),
    refResolver: { buildLocalReference: (json, _base, _fragment, index) => `${json.$id ?? `schema-${index}`}` },
    transform: ({ schema, url, route }) => {
      const described = schema?.response
        ? { ...schema, response: describeAnswers(schema.response as Record<string, object>) }
        : schema
      return { schema: url.startsWith('/v1/') ? describeProblems(described, route.config ?? {}) : described, url }
    },
  })
}

/**
 * Every route says by what code it may refuse. Only here: as schemas of the routes themselves they would be compiled into serializers
 * that nobody uses, a dozen a route.
 */
function describeProblems(schema: FastifySchema, { scope, refusals = [] }: FastifyContextConfig): FastifySchema {
  const keyed = 'idempotency-key' in ((schema.headers as { properties?: object } | undefined)?.properties ?? {})
  const codes = [...EVERYWHERE, ...(keyed ? WITH_KEY : []), ...refusals]
  const problems: Record<number, unknown> = {}
  for (const status of new Set(codes.map((code) => ERRORS[code].status).sort())) {
    const own = [...new Set(codes.filter((code) => ERRORS[code].status === status))]
    problems[status] = {
      description: own.map((code) => `\`${code}\`: ${ERRORS[code].meaning}`).join(' '),
      content: { [PROBLEM_JSON]: { schema: { $ref: 'Problem#' } } },
    }
  }
  return {
    ...schema,
    ...(schema.querystring ? { querystring: withoutDefaults(schema.querystring as QuerySchema) } : {}),
    security: [{ bearer: scope ? [scope] : [] }],
    response: { ...(schema.response as object), ...problems },
  }
}

interface Body {
  required?: boolean
  content: Record<string, { schema?: QuerySchema }>
}

/** Where nothing in a body is needed, no body is needed: none is an empty one. */
function withOptionalBodies<Document extends { paths?: object }>(document: Document): Document {
  const operations = Object.values(document.paths ?? {}).flatMap((path: object) => Object.values(path))
  for (const { requestBody } of operations as { requestBody?: Body }[]) {
    const { properties = {}, required = [] } = requestBody?.content['application/json']?.schema ?? {}
    if (requestBody) requestBody.required = required.some((name) => !('default' in (properties[name] ?? {})))
  }
  return document
}

/** OpenAPI wants a sentence for each; what is in it stands in its schema. */
const describeAnswers = (answers: Record<string, object>): Record<string, object> =>
  Object.fromEntries(
    Object.entries(answers).map(([status, schema]) => [
      status,
      'description' in schema || 'content' in schema
        ? schema
        : { description: 'The answer', content: { 'application/json': { schema } } },
    ]),
  )

interface QuerySchema {
  readonly properties: Readonly<Record<string, object>>
  readonly required?: readonly string[]
}

/** What has a default is there for the route that asks for it, and nothing that a caller must send. */
const withoutDefaults = (schema: QuerySchema): object => ({
  ...schema,
  required: schema.required?.filter((name) => !('default' in (schema.properties[name] ?? {}))) ?? [],
})

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
    response: { 200: Type.Unknown({ description: 'An OpenAPI document' }) },
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
