import { Type } from 'typebox'
import { requireKey, requireScope, type Scope, TOKEN_TTL_DEFAULT_MS, TOKEN_TTL_MAX_MS } from '../access/index.js'
import { Id, oneOf, Time } from '../schemas/index.js'
import type { Routes } from './index.js'
import { type ApiOptions, WalletPath } from './v1.js'

/** What a browser may be given. Who administers has no business in one. */
const TOKEN_SCOPES = ['read', 'spend', 'fund'] as const satisfies readonly Scope[]

export const tokenRoutes: Routes<ApiOptions> = async (app, { gate }) => {
  const schema = {
    operationId: 'createWalletToken',
    summary: 'A short-lived token for this one wallet, to be handed to a browser',
    description: 'It may do at most what the key may that it is made with, and dies with it.',
    tags: ['tokens'],
    params: WalletPath,
    body: Type.Object(
      {
        scopes: Type.Array(oneOf(TOKEN_SCOPES), { minItems: 1, maxItems: TOKEN_SCOPES.length }),
        ttl: Type.Integer({
          minimum: 1_000,
          maximum: TOKEN_TTL_MAX_MS,
          default: TOKEN_TTL_DEFAULT_MS,
          description: 'Milliseconds',
        }),
      },
      { additionalProperties: false, required: ['scopes'] },
    ),
    response: {
      200: Type.Object({
        token: Type.String(),
        wallet: Id,
        scopes: Type.Array(oneOf(TOKEN_SCOPES)),
        expiresAt: Time,
      }),
    },
  }
  app.post('/wallets/:id/tokens', { schema }, async ({ caller, params: { id: wallet }, body: { scopes, ttl } }) => {
    requireKey(caller)
    for (const scope of scopes) requireScope(caller, scope)
    const claims = { keyId: caller.keyId, wallet, scopes: [...new Set(scopes)], expiresAt: Date.now() + ttl }
    return { token: gate.sign(claims), wallet, scopes: claims.scopes, expiresAt: claims.expiresAt }
  })
}
