import { styleText } from 'node:util'
import { HoldfastError, inspectRedis, inspectServer, Postgres, RedisConnection, readStop } from 'holdfast'
import type { ReadConfig } from '../config/index.js'
import { EXIT, type Run } from './command.js'
import { tableOf } from './table.js'

interface Check {
  of: 'redis' | 'postgres'
  severity: 'ok' | 'warning' | 'danger'
  setting: string
  text: string
}

const COLOURS = { ok: 'green', warning: 'yellow', danger: 'red' } as const

/** Looks at everything that what Holdfast promises rests on, and changes nothing. */
export const doctor: Run = async (given, terminal) => {
  const checks = (await Promise.all([ofPostgres(given), ofRedis(given)])).flat()
  const worst = (severity: Check['severity']) => checks.filter((check) => check.severity === severity).length
  if (given.config.json)
    terminal.print(JSON.stringify({ checks, warnings: worst('warning'), dangers: worst('danger') }))
  else terminal.print(asText(checks, worst('warning'), worst('danger')))
  return worst('danger') === 0 ? EXIT.ok : EXIT.failed
}

async function ofPostgres({ config, nameOf }: ReadConfig): Promise<Check[]> {
  const maxConnections = config.databaseConnections as number
  return looking('postgres', nameOf('databaseUrl'), async () => {
    const postgres = new Postgres(config.databaseUrl as string, { schema: config.schema as string, maxConnections })
    try {
      const checks = await inspectServer(postgres)
      const stop = await readStop(postgres)
      const journal = {
        setting: 'journal',
        severity: stop === null ? ('ok' as const) : ('danger' as const),
        text: stop === null ? 'nothing is known to be missing' : `${stop}: run "holdfast reconcile"`,
      }
      return [...checks, journal]
    } finally {
      await postgres.close()
    }
  })
}

async function ofRedis({ config, nameOf }: ReadConfig): Promise<Check[]> {
  return looking('redis', nameOf('redisUrl'), async () => {
    const redis = new RedisConnection(config.redisUrl as string)
    try {
      return await inspectRedis(redis, { memory: config.memory ?? false })
    } finally {
      await redis.close()
    }
  })
}

/** A server that is not there is one more finding, not the end of it. */
async function looking(of: Check['of'], name: string, look: () => Promise<Omit<Check, 'of'>[]>): Promise<Check[]> {
  try {
    return (await look()).map((check) => ({ of, ...check }))
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error
    return [{ of, severity: 'danger', setting: 'connection', text: `${name}: ${error.message}` }]
  }
}

function asText(checks: readonly Check[], warnings: number, dangers: number): string {
  const table = tableOf(
    ['SERVER', 'CHECK', '', 'FOUND'],
    checks.map(({ of, setting, severity, text }) => [of, setting, severity, text]),
  )
  const lines = table.split('\n').map((line, index) => {
    const severity = checks[index - 1]?.severity
    return severity && severity !== 'ok' ? styleText(COLOURS[severity], line) : line
  })
  const summary = dangers + warnings === 0 ? 'All is well.' : `${dangers} dangers, ${warnings} warnings.`
  return [...lines, '', styleText(COLOURS[dangers > 0 ? 'danger' : warnings > 0 ? 'warning' : 'ok'], summary)].join(
    '\n',
  )
}
