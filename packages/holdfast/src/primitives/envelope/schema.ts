import { invalid, show } from '../../input/index.js'

type Validated<Payload> =
  | { readonly value: Payload; readonly issues?: undefined }
  | { readonly issues: readonly unknown[] }

/**
 * What tells whether something is a payload, and makes one of it: a function that throws where it is none, anything with such a `parse`, or
 * a schema as Zod, Valibot, ArkType and others have it in common (`~standard`). None of them is a dependency.
 */
export type Schema<Payload> =
  | ((payload: unknown) => Payload)
  | { parse(payload: unknown): Payload }
  | { readonly '~standard': { validate(payload: unknown): Validated<Payload> | Promise<Validated<Payload>> } }

/** Resolves with the payload, rejects where it is none. */
export type Check<Payload> = (payload: unknown) => Promise<Payload>

export function checkOf<Payload>(schema: Schema<Payload>): Check<Payload> {
  const given = schema as unknown
  const isObject = (typeof given === 'object' && given !== null) || typeof given === 'function'
  // First: some of these can be called too, and then return what is wrong instead of throwing it.
  if (isObject && '~standard' in given) {
    const standard = given['~standard'] as { validate(payload: unknown): Promise<Validated<Payload>> } | null
    if (typeof standard?.validate !== 'function') {
      throw invalid('schema', 'a function to validate with in ~standard', show(standard?.validate))
    }
    return async (payload) => {
      const validated = await standard.validate(payload)
      if (validated.issues === undefined) return validated.value
      throw new Error('The schema does not allow it', { cause: validated.issues })
    }
  }
  if (typeof given === 'function') return async (payload) => given(payload)
  if (isObject && 'parse' in given && typeof given.parse === 'function') {
    const parser = given as { parse(payload: unknown): Payload }
    return async (payload) => parser.parse(payload)
  }
  throw invalid('schema', 'a function, or an object with parse or ~standard', show(given))
}
