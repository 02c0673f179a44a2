import { auditRoutes } from './audit.js'
import { batchRoutes } from './batch.js'
import { eventRoutes } from './events.js'
import { flagRoutes } from './flags.js'
import { holdRoutes } from './holds.js'
import type { Routes } from './index.js'
import { operationRoutes } from './operations.js'
import { saleScheduleRoutes } from './sale-schedules.js'
import { saleRoutes } from './sales.js'
import { sessionRoutes } from './sessions.js'
import { tokenRoutes } from './tokens.js'
import { transferRoutes } from './transfers.js'
import { type ApiOptions, letIn } from './v1.js'
import { walletRoutes } from './wallets.js'
import { webhookRoutes } from './webhooks.js'

export type { ApiOptions } from './v1.js'

/** Everything below `/v1`: behind the gate. */
export const apiRoutes: Routes<ApiOptions> = async (app, options) => {
  const { holdfast, gate, events, webhooks, audits, schedules, flagsOf } = options
  app.addHook('onRequest', (request, reply, done) => {
    try {
      const later = letIn(gate, request, reply)
      if (later) later.then(() => done(), done)
      else done()
    } catch (error) {
      done(error as Error)
    }
  })
  // No body is an empty one: the schema then says what is missing, if anything is.
  app.addHook('preValidation', (request, _reply, done) => {
    if (request.body === undefined) request.body = {}
    done()
  })
  for (const routes of [
    walletRoutes,
    operationRoutes,
    holdRoutes,
    sessionRoutes,
    saleRoutes,
    saleScheduleRoutes,
    transferRoutes,
    batchRoutes,
    tokenRoutes,
    eventRoutes,
    webhookRoutes,
    auditRoutes,
    flagRoutes,
  ]) {
    await app.register(routes, { holdfast, gate, events, webhooks, audits, schedules, flagsOf })
  }
}
