import { Ajv, type ErrorObject } from 'ajv'
import type { FastifyError, FastifySchemaCompiler } from 'fastify'
import { HoldfastError } from 'holdfast'

/**
 * A body is taken as it is: "100" is no amount, and an unknown member is a mistake rather than something to drop. Queries,
 * paths and headers are text by nature, so there numbers are read out of it.
 */
const OPTIONS = { allErrors: false, useDefaults: true, verbose: true, strict: false, discriminator: true } as const
const asIs = new Ajv({ ...OPTIONS, coerceTypes: false })
const fromText = new Ajv({ ...OPTIONS, coerceTypes: true })

export const validatorCompiler: FastifySchemaCompiler<object> = ({ schema, httpPart }) =>
  (httpPart === 'body' ? asIs : fromText).compile(schema)

const WHERE: Record<string, string> = { params: 'path', querystring: 'query', headers: 'header' }

/** Says where, what was expected and what came. */
export function validationError(
  errors: NonNullable<FastifyError['validation']>,
  context: FastifyError['validationContext'] = 'body',
): HoldfastError {
  const error = errors[0] as unknown as ErrorObject | undefined
  const part = WHERE[context] ?? context
  if (error === undefined) return new HoldfastError('invalid_argument')
  if (error.params.missingProperty === 'idempotency-key') {
    const argument = 'header.idempotency-key'
    return new HoldfastError('key_required', `${argument}: expected a key of 1 to 255 characters, got none`, {
      argument,
    })
  }
  const { path, expected, got } = describe(error)
  const argument = [part, ...path].join('.')
  const code = error.parentSchema?.['x-code'] === 'invalid_amount' ? 'invalid_amount' : 'invalid_argument'
  return new HoldfastError(code, `${argument}: expected ${expected}, got ${got}`, { argument })
}

function describe(error: ErrorObject): { path: string[]; expected: string; got: string } {
  const path = error.instancePath.split('/').slice(1)
  const { keyword, params } = error
  if (keyword === 'required') return { path: [...path, params.missingProperty], expected: 'a value', got: 'nothing' }
  if (keyword === 'additionalProperties') {
    return { path: [...path, params.additionalProperty], expected: 'no such member', got: 'one' }
  }
  return { path, expected: expectation(error), got: shown(error.data) }
}

function expectation({ keyword, params, message }: ErrorObject): string {
  if (keyword === 'type') return articled(params.type)
  if (keyword === 'enum') return `one of ${params.allowedValues.join(', ')}`
  if (keyword === 'discriminator') return `${articled(params.tag)} that there is`
  if (keyword === 'const') return JSON.stringify(params.allowedValue)
  return (message ?? keyword).replace(/^must (NOT )?(be |have |match )?/, (_, not) => (not ? 'not ' : ''))
}

/** One kind, or several of which any will do. */
const articled = (nouns: string | readonly string[]): string =>
  [nouns]
    .flat()
    .map((noun) => `${/^[aeiou]/.test(noun) ? 'an' : 'a'} ${noun}`)
    .join(' or ')

const SHOWN_MAX = 60

function shown(value: unknown): string {
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object' && value !== null) return 'an object'
  const text = JSON.stringify(value) ?? typeof value
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text
}
