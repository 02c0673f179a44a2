import type { FastifyRequest } from 'fastify'
import { HoldfastError } from 'holdfast'
import { Type } from 'typebox'
import { requireScope, requireWallet } from '../access/index.js'
import { problemOf, toHoldfastError } from '../http/problem.js'
import { type CallOptions, OPERATIONS, type Operation } from '../operations/index.js'
import { Id } from '../schemas/index.js'
import type { Routes } from './index.js'
import { COMMON_BODY } from './operations.js'
import { type ApiOptions, UnkeyedHeaders, waitOf, walletOf } from './v1.js'

const OPERATIONS_MAX = 100

interface Item {
  operation: string
  wallet: string
  key?: string
  hold?: string
  session?: string
  counter?: string
  metadata?: unknown
  [argument: string]: unknown
}

const byName = new Map(OPERATIONS.map((operation) => [operation.name, operation]))

const itemOf = ({ name, path, keyed, body }: Operation) =>
  Type.Object(
    {
      operation: Type.Literal(name),
      wallet: Id,
      ...(keyed && { key: Id }),
      ...(path.includes(':hold') && { hold: Id }),
      ...(path.includes(':session') && { session: Id }),
      ...body,
      ...COMMON_BODY,
    },
    { additionalProperties: false },
  )

export const batchRoutes: Routes<ApiOptions> = async (app, options) => {
  const schema = {
    operationId: 'runBatch',
    summary: 'Many operations in one request, each with its own key and its own result',
    description:
      'They run at the same time and stand for themselves: one that is refused takes none of the others back. What must come after ' +
      'another belongs into a later request. A batch that is not understood as a whole does nothing.',
    tags: ['batch'],
    headers: UnkeyedHeaders,
    body: Type.Object(
      {
        operations: Type.Array(
          Type.Unsafe<Item>({
            type: 'object',
            required: ['operation'],
            discriminator: { propertyName: 'operation' },
            oneOf: OPERATIONS.map(itemOf),
          }),
          { minItems: 1, maxItems: OPERATIONS_MAX },
        ),
      },
      { additionalProperties: false },
    ),
    response: {
      200: Type.Object({
        results: Type.Array(
          Type.Object({
            status: Type.Integer({ description: 'As the operation would have been answered by itself' }),
            body: Type.Unknown({ description: 'The answer, or the problem' }),
          }),
          { description: 'In the order of the operations' },
        ),
      }),
    },
  }
  app.post('/batch', { schema }, async (request, reply) => {
    const { operations } = request.body
    options.gate.spend(request.caller, operations.length - 1)
    const wait = waitOf(request, reply)
    const results = await Promise.all(operations.map((item) => runItem(options, request, item, wait)))
    return { results }
  })
}

async function runItem(
  options: ApiOptions,
  request: FastifyRequest,
  item: Item,
  wait: Pick<CallOptions, 'durability' | 'signal'>,
): Promise<{ status: number; body: unknown }> {
  const { operation: name, wallet: id, key = '', hold = '', session = '', counter, metadata, ...body } = item
  try {
    const operation = byName.get(name)
    if (!operation) throw new HoldfastError('invalid_argument')
    requireScope(request.caller, operation.scope)
    requireWallet(request.caller, id)
    const subject = { wallet: walletOf(options, request.caller, id), hold, session }
    const answer = await operation.run(subject, body, {
      key,
      ...(counter !== undefined && { counter }),
      ...(metadata !== undefined && { metadata }),
      ...wait,
    })
    return { status: 200, body: answer }
  } catch (error) {
    const refusal = toHoldfastError(error)
    if (refusal.code === 'internal_error') request.log.error({ err: refusal.cause }, 'request_failed')
    return { status: refusal.status, body: problemOf(refusal, request.id) }
  }
}
