/** The description of the API, as clients read it: what can be sent, and what must come back. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'

export interface Schema {
  type?: string | string[]
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
  items?: Schema
  oneOf?: Schema[]
  enum?: unknown[]
  const?: unknown
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  $ref?: string
  [other: string]: unknown
}

interface Content {
  content?: Record<string, { schema: Schema }>
}

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  schema: Schema
}

export interface OperationObject {
  operationId: string
  summary: string
  tags: string[]
  security?: Record<string, string[]>[]
  parameters?: Parameter[]
  requestBody?: Content & { required?: boolean }
  responses: Record<string, Content & { description: string }>
}

export interface OpenApi {
  openapi: string
  info: { version: string; title: string }
  tags: { name: string }[]
  paths: Record<string, Record<string, OperationObject>>
  components: { schemas: Record<string, Schema>; securitySchemes: Record<string, { type: string; scheme: string }> }
}

export interface Described extends OperationObject {
  method: string
  path: string
}

export const operationsOf = ({ paths }: OpenApi): Described[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
  )

export const bodyOf = ({ requestBody }: OperationObject): Schema | undefined =>
  requestBody?.content?.['application/json']?.schema

/** Holds answers against what the description says of them. */
export class Contract {
  readonly #ajv: Ajv2020
  readonly #compiled = new Map<string, ValidateFunction>()

  constructor(document: OpenApi) {
    this.#ajv = new Ajv2020({ strict: false, allErrors: true })
    this.#ajv.addSchema(document, 'openapi')
  }

  /** What is wrong with the answer; null: nothing. */
  mistakeIn(operation: Described, status: number, contentType: string, body: unknown): string | null {
    const type = contentType.split(';')[0] as string
    const response = operation.responses[status]
    if (!response) return `${operation.operationId} does not describe the status ${status}`
    if (!response.content?.[type]) return `${operation.operationId} does not describe ${type} with ${status}`
    const path = [
      'paths',
      operation.path,
      operation.method.toLowerCase(),
      'responses',
      status,
      'content',
      type,
      'schema',
    ]
    const pointer = path
      .map((part) => encodeURIComponent(`${part}`.replaceAll('~', '~0').replaceAll('/', '~1')))
      .join('/')
    let validate = this.#compiled.get(pointer)
    if (!validate) {
      validate = this.#ajv.compile({ $ref: `openapi#/${pointer}` })
      this.#compiled.set(pointer, validate)
    }
    return validate(body) ? null : this.#ajv.errorsText(validate.errors)
  }
}
