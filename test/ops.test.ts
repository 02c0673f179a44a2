/** What lies under `ops/` is about this product as it is: every setting and every metric that it names is there. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { METRICS } from 'holdfast'
import { beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { OPTIONS, type Option } from '../packages/server/src/config/index.js'
import { createLogger } from '../packages/server/src/logging/index.js'
import { createMetrics, HTTP_METRICS } from '../packages/server/src/metrics/index.js'

const OPS = fileURLToPath(new URL('../ops', import.meta.url))
const read = (path: string): string => readFileSync(join(OPS, path), 'utf8')

const options = Object.values<Option<unknown>>(OPTIONS)

/** Wrong as a name, or as a value. A value that comes from the shell is as good as what is expected. */
function wrongSettings(environment: Record<string, string>): string[] {
  return Object.entries(environment).flatMap(([name, value]) => {
    const option = options.find(({ variable }) => variable === name)
    if (!option) return [`${name} is no variable of Holdfast`]
    const filled = value.replaceAll(/\$\{[^}]*\}/g, 'secret')
    return option.parse(filled) === undefined ? [`${name}: expected ${option.expected}, got ${filled}`] : []
  })
}

interface ComposeService {
  build?: { context: string; dockerfile: string }
  command?: string[]
  environment?: Record<string, string>
  depends_on?: Record<string, { condition: string }>
  volumes?: string[]
  healthcheck?: object
  stop_grace_period?: string
}

describe('ops/compose.yaml', () => {
  const compose = parse(read('compose.yaml'), { merge: true }) as {
    services: Record<string, ComposeService>
    volumes: Record<string, unknown>
  }
  const { redis, postgres, migrate, server } = compose.services as Record<string, ComposeService>

  it('gives the server and its migration settings that exist', () => {
    expect(wrongSettings(server?.environment ?? {})).toEqual([])
    expect(wrongSettings(migrate?.environment ?? {})).toEqual([])
    expect(Object.keys(server?.environment ?? {})).toEqual(expect.arrayContaining(['REDIS_URL', 'DATABASE_URL']))
    expect(wrongSettings({ HOLDFAST_PROT: '1', HOLDFAST_PORT: 'http' })).toHaveLength(2)
  })

  it('keeps what the promise rests on', () => {
    const redisFlags = redis?.command?.join(' ')
    expect(redisFlags).toContain('--maxmemory-policy noeviction')
    expect(redisFlags).toContain('--appendonly yes')
    const settings = postgres?.command?.filter((one) => one.includes('='))
    expect(settings).toEqual(expect.arrayContaining(['fsync=on', 'full_page_writes=on', 'synchronous_commit=on']))
    for (const service of [redis, postgres]) {
      expect(service?.healthcheck).toBeDefined()
      for (const volume of service?.volumes ?? []) {
        expect(Object.keys(compose.volumes)).toContain(volume.split(':')[0])
      }
    }
  })

  it('starts in an order that works, and gives a stop more time than it needs', () => {
    expect(migrate?.command).toEqual(['migrate'])
    expect(server?.depends_on).toMatchObject({
      migrate: { condition: 'service_completed_successfully' },
      redis: { condition: 'service_healthy' },
    })
    const { HOLDFAST_DRAIN_MS, HOLDFAST_SHUTDOWN_TIMEOUT_MS } = server?.environment ?? {}
    const neededMs = Number(HOLDFAST_DRAIN_MS) + Number(HOLDFAST_SHUTDOWN_TIMEOUT_MS)
    expect(Number.parseInt(server?.stop_grace_period ?? '', 10) * 1_000).toBeGreaterThan(neededMs)
  })
})

describe('ops/Dockerfile', () => {
  const lines = read('Dockerfile').split('\n')

  it('copies what is there, and runs as nobody in particular', () => {
    const copied = lines.flatMap((line) => /^COPY (?!--from)(.+) \S+$/.exec(line)?.[1]?.split(' ') ?? [])
    expect(copied.length).toBeGreaterThan(4)
    for (const path of copied) expect([path, existsSync(join(dirname(OPS), path))]).toEqual([path, true])
    expect(lines.filter((line) => line.startsWith('USER '))).toEqual(['USER node'])
    expect(lines.some((line) => line.startsWith('HEALTHCHECK '))).toBe(true)
  })

  it('sets what exists', () => {
    const set = [...read('Dockerfile').matchAll(/\b(HOLDFAST_\w+)=(\S+)/g)].map(([, name, value]) => [name, value])
    expect(set.length).toBeGreaterThan(0)
    expect(wrongSettings(Object.fromEntries(set))).toEqual([])
  })
})

describe('ops/systemd/holdfast.service', () => {
  const unit = read('systemd/holdfast.service')
  const settingOf = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? ''

  it('sets what exists, and gives a stop more time than it needs', () => {
    const set = Object.fromEntries(
      [...unit.matchAll(/\b(HOLDFAST_\w+)=(\S+)/g)].map(([, name, value]) => [name, value]),
    )
    expect(wrongSettings(set)).toEqual([])
    const neededMs = Number(set.HOLDFAST_DRAIN_MS) + Number(set.HOLDFAST_SHUTDOWN_TIMEOUT_MS)
    expect(Number(settingOf('TimeoutStopSec')) * 1_000).toBeGreaterThan(neededMs)
    expect(settingOf('KillSignal')).toBe('SIGTERM')
    expect(settingOf('ExecStart')).toMatch(/ holdfast serve$/)
  })
})

describe('dashboard and alerts', () => {
  const OURS = Object.entries<{ labels: readonly string[]; type: string }>({ ...METRICS, ...HTTP_METRICS })
  /** Every series that a server has, with its labels. */
  const series = new Map(
    OURS.flatMap(([name, { labels, type }]): [string, readonly string[]][] =>
      type === 'histogram'
        ? [
            [`${name}_bucket`, [...labels, 'le']],
            [`${name}_count`, labels],
            [`${name}_sum`, labels],
          ]
        : [[name, labels]],
    ),
  )
  const FROM_PROMETHEUS = ['instance', 'job']

  const dashboard = JSON.parse(read('grafana/holdfast.json')) as {
    panels: { title: string; gridPos: Record<string, number>; targets?: { expr: string }[] }[]
  }
  const rules = (
    parse(read('prometheus/alerts.yaml')) as { groups: { rules: { alert: string; expr: string }[] }[] }
  ).groups
    .flatMap((group) => group.rules)
    .map(({ alert, expr }) => ({ where: alert, expr }))
  const panels = dashboard.panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({ where: title, expr })),
  )

  let known = new Map<string, readonly string[]>()
  beforeAll(async () => {
    const { registry } = createMetrics(createLogger('silent'))
    const text = await registry.metrics()
    const ofProcess = [...text.matchAll(/^# TYPE ((?:process|nodejs)_\w+) (\w+)/gm)].flatMap(([, name, type]) =>
      type === 'histogram' ? [`${name}_sum`, `${name}_count`] : [name as string],
    )
    known = new Map([...series, ...ofProcess.map((name): [string, string[]] => [name, []])])
  })

  /** Metrics that don't exist, and labels that the metrics before them don't have. */
  function mistakesIn(expr: string): string[] {
    const named = [...expr.matchAll(/\b([a-z]+(?:_[a-z0-9]+)+)\b(?!\s*\()(?:\{([^}]*)\})?/g)].filter(
      ([, name]) => !/^(by|le)$/.test(name as string) && !isLabelList(expr, name as string),
    )
    const labels = new Set(named.flatMap(([, name]) => known.get(name as string) ?? []))
    const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list]) => (list as string).split(/, */))
    return [
      ...named.flatMap(([, name, matchers = '']) => {
        const own = known.get(name as string)
        if (!own) return [`no metric ${name}`]
        const used = [...matchers.matchAll(/(\w+)(?:=|!)/g)].map(([, label]) => label as string)
        return used
          .filter((label) => ![...own, ...FROM_PROMETHEUS].includes(label))
          .map((label) => `${name}: no ${label}`)
      }),
      ...grouped
        .filter((label) => ![...labels, ...FROM_PROMETHEUS].includes(label))
        .map((label) => `no label ${label}`),
    ]
  }

  /** Labels have underscores too. */
  const isLabelList = (expr: string, name: string) => new RegExp(`by \\([^)]*\\b${name}\\b`).test(expr)

  it('name metrics and labels that exist', () => {
    expect(panels.length).toBeGreaterThan(40)
    expect(rules.length).toBeGreaterThan(10)
    for (const { where, expr } of [...panels, ...rules]) expect([where, mistakesIn(expr)]).toEqual([where, []])
  })

  it('would not name others unnoticed', () => {
    expect(mistakesIn('sum(rate(holdfast_sweep_total[5m]))')).toEqual(['no metric holdfast_sweep_total'])
    expect(mistakesIn('sum by (route) (holdfast_sweeps_total{result="done"})')).toEqual([
      'holdfast_sweeps_total: no result',
      'no label route',
    ])
    expect(mistakesIn('rate(http_request_duration_seconds[5m])')).toHaveLength(1)
  })

  it('show every metric of the tables somewhere', () => {
    const shown = [...panels, ...rules].map(({ expr }) => expr).join('\n')
    expect(OURS.map(([name]) => name).filter((name) => !shown.includes(name))).toEqual([])
  })

  it('are described, alert by alert', () => {
    const page = readFileSync(join(dirname(OPS), 'docs/operating/monitoring.md'), 'utf8')
    const told = [...page.matchAll(/^\| `(Holdfast\w+)` /gm)].map(([, name]) => name)
    expect(told.sort()).toEqual(rules.map(({ where }) => where).sort())
  })

  it('have panels that don’t lie on one another', () => {
    const taken = new Set<string>()
    for (const { title, gridPos } of dashboard.panels) {
      const { x = 0, y = 0, w = 0, h = 0 } = gridPos
      expect(x + w).toBeLessThanOrEqual(24)
      for (let column = x; column < x + w; column += 1) {
        for (let line = y; line < y + h; line += 1) {
          expect([title, taken.has(`${column} ${line}`)]).toEqual([title, false])
          taken.add(`${column} ${line}`)
        }
      }
    }
  })
})
