import { ERRORS, type ErrorCode } from 'holdfast'
import { Type } from 'typebox'
import { oneOf } from '../schemas/index.js'
import type { Routes } from './index.js'

const CODES = Object.keys(ERRORS) as ErrorCode[]

/** Where `docs` of a problem leads: what the code means, and what to do about it. */
export const errorRoutes: Routes = async (app) => {
  const schema = {
    operationId: 'getError',
    summary: 'What an error code means, and what to do about it',
    tags: ['operating'],
    params: Type.Object({ code: oneOf(CODES) }),
    response: { 200: Type.String({ description: 'A page for people' }) },
  }
  app.get('/errors/:code', { schema }, async (request, reply) => {
    const page = pageOf(request.params.code)
    return reply.type('text/html; charset=utf-8').serializer(String).send(page)
  })
}

function pageOf(code: ErrorCode): string {
  const { status, retryable, meaning, action } = ERRORS[code]
  return `<!doctype html>
<html lang="en">
<title>${code} · Holdfast</title>
<h1>${code}</h1>
<p>Status ${status}, ${retryable ? 'retryable' : 'not retryable'}. ${escaped(meaning)}</p>
<p>${escaped(action).replaceAll(/`([^`]*)`/g, '<code>$1</code>')}</p>
</html>
`
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
