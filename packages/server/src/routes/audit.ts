import { Type } from 'typebox'
import { requireKey, requireWholeTenant } from '../access/index.js'
import { departureOf } from '../http/departure.js'
import { Count, FindingCounts, FindingPage, PageLimit, refTo, Time } from '../schemas/index.js'
import type { Routes } from './index.js'
import type { ApiOptions } from './v1.js'

const ID_MAX = Number.MAX_SAFE_INTEGER - 1
const SHARD_MAX = 16_383

const Request = Type.Object(
  {
    shard: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: SHARD_MAX,
        description: 'Only this one. Without it all, one after the other',
      }),
    ),
    full: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Reads every journal from its beginning, also what was verified before',
      }),
    ),
    repair: Type.Optional(
      Type.Boolean({ default: true, description: 'Puts right what the journal decides, where the server may' }),
    ),
  },
  { additionalProperties: false },
)

const Report = Type.Object({
  shards: Type.Array(Count, { description: 'Those that were audited' }),
  busy: Type.Array(Count, { description: 'Those that another process was at all the while' }),
  blind: Type.Array(Count, { description: 'Those of which only journals were audited, because Redis did not answer' }),
  counts: refTo(FindingCounts),
  durationMs: Count,
})

/** For who administers a tenant. Audits go by shards and so over all tenants: what is told is of the caller's alone. */
export const auditRoutes: Routes<ApiOptions> = async (app, { holdfast, audits }) => {
  const tags = ['operating']
  const config = { scope: 'admin' } as const

  const run = {
    operationId: 'runAudit',
    summary: 'Compare what Redis has with the journals, and these with the laws that they obey, now',
    description:
      'Beside live traffic, and without waiting for the next audit that runs by itself. Answers when it is done: give a `shard` where ' +
      'that takes too long. One at a time in each process.',
    tags,
    body: Request,
    response: { 200: Report },
  }
  app.post('/audit', { schema: run, config }, async ({ caller, body }, reply) => {
    requireKey(caller)
    requireWholeTenant(caller)
    const report = await audits.run({ ...body, signal: departureOf(reply) })
    const { shards, busy, blind, durationMs, tenants } = report
    const counts = tenants[caller.tenant] ?? { found: 0, repaired: 0, unrepaired: 0 }
    return { shards: [...shards], busy: [...busy], blind: [...blind], counts, durationMs }
  })

  const list = {
    operationId: 'listFindings',
    summary: 'What audits have found, in the order in which it was first found, a page at a time',
    description:
      'Kept for 90 days after it was last found. `since` some minutes ago: what is still so, or was repaired since.',
    tags,
    querystring: Type.Object({
      after: Type.Integer({ minimum: 0, maximum: ID_MAX, default: 0, description: '`next` of the page before' }),
      limit: PageLimit,
      since: Type.Integer({
        ...Time,
        minimum: 0,
        maximum: ID_MAX,
        default: 0,
        description: 'Found, or found again, then or later',
      }),
    }),
    response: { 200: FindingPage },
  }
  app.get('/audit/findings', { schema: list, config }, async ({ caller, query }, reply) => {
    requireKey(caller)
    const { after, limit, since } = query
    const { walletPrefix: prefix } = caller
    const data = await holdfast.forTenant(caller.tenant).findings({
      after,
      limit,
      since,
      ...(prefix !== '' && { prefix }),
      signal: departureOf(reply),
    })
    return { data, next: data.length === limit ? (data.at(-1)?.id ?? null) : null }
  })
}
