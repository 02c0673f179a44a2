import { type DevServices, openDevServices } from '@holdfast/services'
import { untilSignal } from '../lifecycle/index.js'
import { VERSION } from '../version.js'
import type { Run } from './command.js'
import { devKey } from './dev-key.js'
import { type ServeConfig, type Started, start, stopCode } from './serve.js'

/** Everything on one machine: what is not given by URL is started here, and stops with us. */
export const dev: Run = async ({ config, nameOf }, { print }) => {
  const startedAt = performance.now()
  const services = await openDevServices({
    dir: config.dataDir as string,
    redis: config.redisUrl === undefined,
    postgres: config.databaseUrl === undefined,
  })
  try {
    const redisUrl = services.redisUrl ?? config.redisUrl
    const databaseUrl = services.databaseUrl ?? config.databaseUrl
    const started = await start({ ...config, redisUrl, databaseUrl, migrate: true } as ServeConfig, nameOf)
    const key = await devKey(services.dir, started.backend).catch(async (error) => {
      await started.server.stop()
      throw error
    })
    const readyMs = Math.round(performance.now() - startedAt)
    // Before it says that it is ready: whoever reads that may send a signal at once.
    const stopAsked = untilSignal()
    print(config.json ? asJson(started, services, key, readyMs) : asText(started, services, key, readyMs))
    await stopAsked
    return await stopCode(started.server)
  } finally {
    await services.stop()
  }
}

const asJson = ({ server: { url } }: Started, { dir }: DevServices, key: string, readyMs: number) =>
  JSON.stringify({ event: 'ready', url, docs: `${url}/docs`, key, dataDir: dir, version: VERSION, readyMs })

function asText(
  { server: { url }, connections }: Started,
  { redis, postgres, dir }: DevServices,
  key: string,
  readyMs: number,
) {
  const lines = [
    `Holdfast ${VERSION}`,
    '',
    `  server    ${url}`,
    `  docs      ${url}/docs`,
    `  API key   ${key}`,
    // Without the URLs: the private servers have passwords.
    `  Redis     ${redis ? 'private, ' : ''}${connections.redis.address}`,
    `  Postgres  ${postgres ? 'private, ' : ''}${connections.postgres.address}`,
    ...(redis || postgres ? [`  data      ${dir}`] : []),
    '',
    'Try first:',
    '',
    `  curl ${url}/v1/wallets/alice -X PUT -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' -d '{"currency":"usd"}'`,
    '',
    'Ctrl-C stops it.',
    `ready in ${(readyMs / 1000).toFixed(1)} s`,
  ]
  return lines.join('\n')
}
