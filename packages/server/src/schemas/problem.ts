import { ERRORS } from 'holdfast'
import { Type } from 'typebox'

/** How every error looks on the wire. */
export const ProblemSchema = Type.Object(
  {
    type: Type.String({ description: '`urn:holdfast:error:<code>`' }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String({ description: 'For people; programs decide by `code`' }),
    code: Type.String({ enum: Object.keys(ERRORS), description: 'See the reference of errors' }),
    retryable: Type.Boolean({ description: 'Whether the same request may succeed when it is sent again' }),
    requestId: Type.String(),
    docs: Type.String({ description: 'A page about this code, on this server' }),
  },
  {
    $id: 'Problem',
    additionalProperties: true,
    description: 'application/problem+json; facts such as `available` stand beside `code`',
  },
)
