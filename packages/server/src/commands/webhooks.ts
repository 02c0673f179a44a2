import { checkMigrated, HoldfastError, Postgres } from 'holdfast'
import type { ReadConfig } from '../config/index.js'
import { StartError } from '../lifecycle/start-error.js'
import { type Webhook, Webhooks } from '../webhooks/index.js'
import { EXIT, type Run } from './command.js'
import { tableOf } from './table.js'

export const createWebhook: Run = async (given, { print }) => {
  const { config } = given
  const { secret, webhook } = await withWebhooks(given, (webhooks) =>
    webhooks.create(
      {
        tenant: config.tenant as string,
        url: config.webhookUrl as string,
        events: config.webhookEvents,
        walletPrefix: config.walletPrefix,
        balanceLow: config.balanceLow,
      },
      '--url',
    ),
  )
  if (config.json) print(JSON.stringify({ ...webhook, secret }))
  else {
    print(
      `${webhookTable([webhook])}\n\n  ${secret}\n\nThis is the secret. It is shown this once: keep it where secrets are kept.`,
    )
  }
  return EXIT.ok
}

export const listWebhooks: Run = async (given, { print }) => {
  const { config } = given
  const all = await withWebhooks(given, (webhooks) => webhooks.list(config.tenant))
  if (config.json) print(JSON.stringify(all))
  else print(all.length === 0 ? 'There are no webhooks. Make one with: holdfast webhooks create' : webhookTable(all))
  return EXIT.ok
}

export const deleteWebhook: Run = async (given, { print }) => {
  const { config } = given
  const webhook = await withWebhooks(given, async (webhooks) => {
    const found = await webhooks.find(config.webhookId as string)
    await webhooks.delete(found.id)
    return found
  })
  if (config.json) print(JSON.stringify(webhook))
  else print(`The webhook ${webhook.id} is deleted: ${webhook.url} is told nothing more.`)
  return EXIT.ok
}

const PAGE = 1_000

export const deadDeliveries: Run = async (given, { print }) => {
  const { config } = given
  const dead = await withWebhooks(given, async (webhooks) => {
    const { id } = await webhooks.find(config.webhookId as string)
    return webhooks.dead(id, 0, PAGE)
  })
  if (config.json) print(JSON.stringify(dead))
  else if (dead.length === 0) print('Nothing is dead.')
  else {
    const rows = dead.map(({ id, event, tries, reason, deadAt }) => {
      return [`${id}`, event, `${tries}`, momentOf(deadAt), reason ?? '']
    })
    print(tableOf(['id', 'event', 'tries', 'dead since', 'why'], rows))
  }
  return EXIT.ok
}

export const replayDeliveries: Run = async (given, { print }) => {
  const { config } = given
  const replayed = await withWebhooks(given, async (webhooks) => {
    const { id } = await webhooks.find(config.webhookId as string)
    return webhooks.replay(id)
  })
  if (config.json) print(JSON.stringify({ replayed }))
  else print(`${replayed} ${replayed === 1 ? 'event is' : 'events are'} told again, for another day.`)
  return EXIT.ok
}

async function withWebhooks<T>({ config, nameOf }: ReadConfig, work: (webhooks: Webhooks) => Promise<T>): Promise<T> {
  const postgres = new Postgres(config.databaseUrl as string, { schema: config.schema as string, maxConnections: 1 })
  try {
    await checkMigrated(postgres)
    return await work(await Webhooks.of(postgres, new Set(config.webhookHosts)))
  } catch (error) {
    if (HoldfastError.is(error, 'invalid_argument')) throw new StartError(error.message)
    if (HoldfastError.is(error, 'webhook_not_found'))
      throw new StartError('id: expected that of a webhook, got another')
    if (error instanceof HoldfastError) throw new StartError(`${nameOf('databaseUrl')}: ${error.message}`)
    throw error
  } finally {
    await postgres.close()
  }
}

const webhookTable = (webhooks: readonly Webhook[]): string =>
  tableOf(
    ['id', 'tenant', 'url', 'events', 'wallets', 'waiting', 'dead', 'state'],
    webhooks.map((webhook) => [
      webhook.id,
      webhook.tenant,
      webhook.url,
      webhook.events.join(','),
      webhook.walletPrefix === '' ? 'all' : `${webhook.walletPrefix}…`,
      `${webhook.waiting}`,
      `${webhook.dead}`,
      webhook.failingSince === null ? 'good' : `failing since ${momentOf(webhook.failingSince)}`,
    ]),
  )

/** 2026-11-15 10:15 */
const momentOf = (timeMs: number): string => new Date(timeMs).toISOString().slice(0, 16).replace('T', ' ')
