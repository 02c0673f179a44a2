import { HoldfastError } from 'holdfast'
import type { Flag as FlagFacts, FlagChange as Outcome } from 'holdfast/primitives'
import { Type } from 'typebox'
import { type Caller, requireKey, requireWholeTenant } from '../access/index.js'
import {
  AfterSeq,
  FLAG_DEFINITION,
  FLAG_REASONS,
  Flag,
  FlagAnswer,
  FlagChange,
  FlagEvent,
  FlagName,
  FlagVersion,
  PageLimit,
  pageOf,
  refTo,
  Why,
} from '../schemas/index.js'
import type { Routes } from './index.js'
import type { ApiOptions } from './v1.js'

const FlagPath = Type.Object({ flag: FlagName })
const CONDITIONS = { version: Type.Optional(FlagVersion), why: Type.Optional(Why) }

const Definition = Type.Object(
  {
    on: FLAG_DEFINITION.on,
    percentage: Type.Optional({ ...FLAG_DEFINITION.percentage, default: 100 }),
    rules: Type.Optional(FLAG_DEFINITION.rules),
    description: Type.Optional(FLAG_DEFINITION.description),
    ...CONDITIONS,
  },
  { additionalProperties: false },
)

const Question = Type.Object(
  {
    subject: Type.Optional(
      Type.String({ minLength: 1, maxLength: 1_024, description: 'Whom it is asked for. Kept nowhere' }),
    ),
    attributes: Type.Optional(
      Type.Record(
        Type.String(),
        Type.Unsafe<string | number | boolean | null>({ type: ['string', 'number', 'boolean', 'null'] }),
        {
          maxProperties: 100,
        },
      ),
    ),
  },
  { additionalProperties: false },
)

/** For who looks after the feature flags of a tenant. Applications that ask for flags all the time do so in their own process. */
export const flagRoutes: Routes<ApiOptions> = async (app, { flagsOf }) => {
  const tags = ['flags']
  const config = { scope: 'flags' } as const
  const ofOne = { scope: 'flags', refusals: ['flag_not_found'] } as const
  const change = { scope: 'flags', refusals: ['flag_not_found', 'version_conflict'] } as const

  const flags = (caller: Caller) => {
    requireKey(caller)
    requireWholeTenant(caller)
    return flagsOf(caller.tenant)
  }
  const find = async (caller: Caller, name: string): Promise<FlagFacts> => {
    const found = await flags(caller).get(name)
    if (found === null) throw new HoldfastError('flag_not_found')
    return found
  }

  const list = {
    operationId: 'listFlags',
    summary: 'All feature flags, by name',
    tags,
    response: { 200: Type.Object({ data: Type.Array(refTo(Flag)) }) },
  }
  app.get('/flags', { schema: list, config }, async ({ caller }) => ({
    data: (await flags(caller).list()).map(asFlag),
  }))

  const get = {
    operationId: 'getFlag',
    summary: 'A feature flag as it is now',
    tags,
    params: FlagPath,
    response: { 200: refTo(Flag) },
  }
  app.get('/flags/:flag', { schema: get, config: ofOne }, async ({ caller, params }) =>
    asFlag(await find(caller, params.flag)),
  )

  const put = {
    operationId: 'putFlag',
    summary: 'Make a feature flag what is given, or make one. Whether it is killed stays',
    tags,
    params: FlagPath,
    body: Definition,
    response: { 200: refTo(FlagChange) },
  }
  const putConfig = { scope: 'flags', refusals: ['version_conflict'] } as const
  app.put('/flags/:flag', { schema: put, config: putConfig }, async ({ caller, params, body }) => {
    const { version, why, ...definition } = body
    return changeOf(await flags(caller).put(params.flag, definition, authorOf(caller, { version, why })))
  })

  const remove = {
    operationId: 'deleteFlag',
    summary: 'Delete a feature flag. Its history stays',
    tags,
    params: FlagPath,
    // A condition that was misspelt must not be left out of account.
    querystring: Type.Object(CONDITIONS, { additionalProperties: false }),
    response: { 200: refTo(Flag) },
  }
  app.delete('/flags/:flag', { schema: remove, config: change }, async ({ caller, params, query }) => {
    for (;;) {
      const found = await find(caller, params.flag)
      // Only what is told of in the answer is deleted: what somebody else has changed meanwhile is read anew.
      const asked = { ...query, version: query.version ?? found.version }
      const outcome = await flags(caller).delete(params.flag, authorOf(caller, asked))
      if (outcome.result === 'conflict' && query.version === undefined) continue
      refuse(outcome)
      return asFlag(found)
    }
  })

  for (const [kind, summary] of [
    ['kill', 'Off for everybody from now on, before anything else that the flag says'],
    ['unkill', 'Let the flag say again for whom it is on'],
  ] as const) {
    const schema = {
      operationId: `${kind}Flag`,
      summary,
      tags,
      params: FlagPath,
      body: Type.Object(CONDITIONS, { additionalProperties: false }),
      response: { 200: refTo(FlagChange) },
    }
    app.post(`/flags/:flag/${kind}`, { schema, config: change }, async ({ caller, params, body }) =>
      changeOf(await flags(caller)[kind](params.flag, authorOf(caller, body))),
    )
  }

  const evaluate = {
    operationId: 'evaluateFlag',
    summary: 'What a feature flag answers, and why',
    description: 'As Postgres has it now. For one who looks, not for every request of an application.',
    tags,
    params: FlagPath,
    body: Question,
    response: { 200: FlagAnswer },
  }
  app.post('/flags/:flag/evaluate', { schema: evaluate, config: ofOne }, async ({ caller, params, body }) => {
    const {
      because: given,
      version,
      ageMs,
      ...verdict
    } = await flags(caller).check(params.flag, body.subject, body.attributes)
    const because = FLAG_REASONS.find((reason) => reason === given)
    if (because === undefined || version === null) throw new HoldfastError('flag_not_found')
    return { ...verdict, because, version }
  })

  const history = {
    operationId: 'listFlagChanges',
    summary: 'Every change of feature flags, the latest first, a page at a time',
    tags,
    querystring: Type.Object({
      flag: Type.Optional({ ...FlagName, description: 'Only of this one' }),
      after: AfterSeq,
      limit: PageLimit,
    }),
    response: { 200: pageOf(refTo(FlagEvent), Type.Integer()) },
  }
  app.get('/flag-changes', { schema: history, config }, async ({ caller, query }) => {
    const { flag: name, after, limit } = query
    const events = await flags(caller).history({
      ...(name !== undefined && { name }),
      ...(after > 0 && { before: after }),
      limit,
    })
    const data = events.map(({ at, ...event }) => ({ ...event, at: at.getTime() }))
    return { data, next: data.length === limit ? (data.at(-1)?.revision ?? null) : null }
  })
}

const authorOf = ({ keyId }: Caller, { version, why }: { version?: number | undefined; why?: string | undefined }) => ({
  by: `key:${keyId}`,
  ...(version !== undefined && { version }),
  ...(why !== undefined && { why }),
})

function refuse(outcome: Outcome): Exclude<Outcome, { result: 'missing' | 'conflict' }> {
  if (outcome.result === 'missing') throw new HoldfastError('flag_not_found')
  if (outcome.result === 'conflict') {
    throw new HoldfastError('version_conflict', undefined, { version: outcome.flag?.version ?? 0 })
  }
  return outcome
}

function changeOf(outcome: Outcome) {
  const { result, flag, announced } = refuse(outcome)
  return { flag: asFlag(flag as FlagFacts), changed: result === 'changed', announced }
}

const asFlag = ({ createdAt, changedAt, ...flag }: FlagFacts) => ({
  ...flag,
  createdAt: createdAt.getTime(),
  changedAt: changedAt.getTime(),
})
