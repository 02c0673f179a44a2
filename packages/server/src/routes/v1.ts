import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import { type Durability, type ErrorCode, type Holdfast, HoldfastError, type Wallet } from 'holdfast'
import type { FeatureFlags } from 'holdfast/primitives'
import { Type } from 'typebox'
import { type Caller, type Gate, LARGE_BYTES, requireScope, requireWallet, type Scope } from '../access/index.js'
import type { RequestedAudits } from '../audit/index.js'
import type { EventHub } from '../events/index.js'
import { departureOf } from '../http/departure.js'
import { idempotencyKeyOf } from '../http/idempotency-key.js'
import { preferredDurability } from '../http/prefer.js'
import type { ScheduleDriver } from '../sales/index.js'
import { Id } from '../schemas/index.js'
import type { Webhooks } from '../webhooks/index.js'

/** What the routes below `/v1` need. */
export interface ApiOptions {
  readonly holdfast: Holdfast
  readonly gate: Gate
  readonly events: EventHub
  readonly webhooks: Webhooks
  readonly audits: RequestedAudits
  readonly schedules: ScheduleDriver
  /** Feature flags of a tenant, to look after them. */
  readonly flagsOf: (tenant: string) => FeatureFlags
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Below `/v1` there is one by the time a handler runs. */
    caller: Caller
  }
  interface FastifyContextConfig {
    /** What the caller must have; none: the handler decides. */
    scope?: Scope
    /** What it may be refused with, beside what every route may. */
    refusals?: readonly ErrorCode[]
  }
}

export const WalletPath = Type.Object({ id: Id })
export const SalePath = Type.Object({ sale: Id })

/** For POSTs that move something. */
export const KeyedHeaders = Type.Object({
  'idempotency-key': Type.String({
    minLength: 1,
    description: 'Makes the request safe to repeat: the same key gives the first answer again. Bare or quoted',
  }),
  prefer: Type.Optional(Type.String({ description: '`durability=memory`: answer when Redis has decided' })),
})
export const UnkeyedHeaders = Type.Object({ prefer: KeyedHeaders.properties.prefer })

export const walletOf = ({ holdfast }: ApiOptions, { tenant }: Caller, id: string): Wallet =>
  holdfast.forTenant(tenant).wallet(id)

/** For those that were found to need one: the schema of their headers sees to that. */
export function keyOf(request: FastifyRequest): string {
  const key = idempotencyKeyOf(request.raw.rawHeaders)
  if (key === undefined) throw new HoldfastError('key_required')
  return key
}

/** What comes with the request rather than with its body. */
export function waitOf(request: FastifyRequest, reply: FastifyReply): { durability?: Durability; signal: AbortSignal } {
  const durability = preferredDurability(request.headers.prefer as string | undefined)
  if (durability === 'memory' && request.caller.kind === 'token') {
    throw new HoldfastError('forbidden', 'header.prefer: expected no durability=memory with a wallet token, got it')
  }
  return { ...(durability && { durability }), signal: departureOf(reply) }
}

/** Before anything of the body is read. */
export function letIn(gate: Gate, request: FastifyRequest, reply: FastifyReply): void | Promise<void> {
  const caller = gate.identify(request.headers.authorization)
  if (caller instanceof Promise) return caller.then((late) => admit(gate, late, request, reply))
  admit(gate, caller, request, reply)
}

function admit(gate: Gate, caller: Caller, request: FastifyRequest, reply: FastifyReply): void {
  request.caller = caller
  const { scope } = request.routeOptions.config
  if (scope) requireScope(caller, scope)
  const { id } = request.params as { id?: string }
  if (id !== undefined) requireWallet(caller, id)
  // Answered, or given up by the caller: either way it is closed.
  reply.raw.on('close', gate.enter(caller))
  checkLength(caller, request)
}

/** For routes that take larger bodies than others: few at a time, and before anything of them is read. */
export const fewLarge =
  (gate: Gate): onRequestHookHandler =>
  (request, reply, done) => {
    try {
      const bytes = lengthOf(request)
      if (bytes === null || bytes > LARGE_BYTES) reply.raw.on('close', gate.enterLarge(request.caller))
      done()
    } catch (error) {
      done(error as Error)
    }
  }

/** Null: nobody knows. */
const lengthOf = ({ headers }: FastifyRequest): number | null =>
  headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : null

/** The server's own limit holds for all; a key may have a smaller one. */
function checkLength({ bodyMaxBytes }: Caller, request: FastifyRequest): void {
  if (bodyMaxBytes === null) return
  const bytes = lengthOf(request)
  if (bytes !== null && bytes <= bodyMaxBytes) return
  throw new HoldfastError(
    'too_large',
    `body: expected at most ${bodyMaxBytes} bytes for this key, got ${bytes ?? 'a body of unknown length'}`,
    { limit: bodyMaxBytes },
  )
}

/** An empty answer may mean that there is nothing to find it in. */
export async function orWalletNotFound<T>(wallet: Wallet, found: T, isEmpty: boolean): Promise<T> {
  if (isEmpty && (await wallet.get()) === null) throw new HoldfastError('wallet_not_found')
  return found
}
