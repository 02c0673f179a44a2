import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { type CommandName, ConfigError, OPTIONS, type Option, readConfig } from '../src/config/index.js'

const REDIS_URL = 'redis://127.0.0.1:6379'
const DATABASE_URL = 'postgres://127.0.0.1:5432/holdfast'
const NEEDED = { REDIS_URL, DATABASE_URL }

const mistakesOf = (
  command: CommandName,
  flags: Record<string, string>,
  environment: Record<string, string>,
): string[] => {
  try {
    readConfig(command, flags, environment)
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return (error as Error).message.split('\n')
  }
  return []
}

describe('the configuration', () => {
  it('has defaults for all but where Redis and Postgres are', () => {
    const { config } = readConfig('serve', {}, NEEDED)
    expect(config).toMatchObject({
      port: 4020,
      host: '127.0.0.1',
      schema: 'holdfast',
      migrate: false,
      logLevel: 'info',
    })
    expect(readConfig('dev', {}, {}).config).toMatchObject({
      redisUrl: undefined,
      dataDir: '.holdfast',
      logLevel: 'warn',
    })
  })

  it('prefers a flag to the environment, and the environment to the default', () => {
    const environment = { ...NEEDED, HOLDFAST_PORT: '5000', HOLDFAST_HOST: '::1' }
    const { config, nameOf } = readConfig('serve', { port: '6000' }, environment)
    expect([config.port, config.host, config.schema]).toEqual([6000, '::1', 'holdfast'])
    expect([nameOf('port'), nameOf('host'), nameOf('schema')]).toEqual(['--port', 'HOLDFAST_HOST', 'HOLDFAST_SCHEMA'])
  })

  it('takes an empty variable for one that is not set', () => {
    expect(readConfig('dev', {}, { REDIS_URL: '', HOLDFAST_PORT: '' }).config).toMatchObject({
      redisUrl: undefined,
      port: 4020,
    })
  })

  it('names what is missing, all of it at once', () => {
    expect(mistakesOf('serve', {}, {})).toEqual([
      expect.stringMatching(/^REDIS_URL: expected a URL such as redis:.*, got nothing$/),
      expect.stringMatching(/^DATABASE_URL: expected a URL such as postgres:.*, got nothing$/),
    ])
    expect(mistakesOf('migrate', {}, {})).toEqual([expect.stringMatching(/^DATABASE_URL: /)])
  })

  it.each([
    ['HOLDFAST_PORT', '65536'],
    ['HOLDFAST_PORT', '-1'],
    ['HOLDFAST_PORT', '80.5'],
    ['HOLDFAST_PORT', '0x50'],
    ['HOLDFAST_PORT', 'http'],
    ['HOLDFAST_SCHEMA', 'public'],
    ['HOLDFAST_SCHEMA', 'a b'],
    ['HOLDFAST_MIGRATE', 'yes please'],
    ['HOLDFAST_REDIS_CONNECTIONS', '0'],
    ['HOLDFAST_DATABASE_CONNECTIONS', '1e3'],
    ['HOLDFAST_LOG_LEVEL', 'loud'],
    ['HOLDFAST_SHUTDOWN_TIMEOUT_MS', '10s'],
    ['HOLDFAST_HEALTH_TIMEOUT_MS', '0'],
  ])('refuses %s=%s, and says what it expected and got', (variable, value) => {
    const [mistake, ...others] = mistakesOf('serve', {}, { ...NEEDED, [variable]: value })
    expect(mistake).toMatch(new RegExp(`^${variable}: expected .+, got `))
    expect(mistake?.endsWith(`got ${JSON.stringify(value)}`)).toBe(true)
    expect(others).toEqual([])
  })

  it.each([
    ['REDIS_URL', 'http://user:hunter2@host'],
    ['REDIS_URL', 'user:hunter2@host:6379'],
    ['DATABASE_URL', 'mysql://user:hunter2@host/db'],
    ['DATABASE_URL', 'hunter2'],
  ])('refuses a %s that is none, without repeating its password', (variable, value) => {
    const [mistake] = mistakesOf('serve', {}, { ...NEEDED, [variable]: value })
    expect(mistake).toMatch(new RegExp(`^${variable}: expected a URL .*, got something else$`))
    expect(mistake).not.toContain('hunter2')
  })

  it.each(['redis+sentinel://me:pass@a:26379,b:26379/main', 'rediss+cluster://a,b', 'rediss://a'])(
    'takes %s for a Redis',
    (value) => {
      expect(readConfig('serve', {}, { ...NEEDED, REDIS_URL: value }).config.redisUrl).toBe(value)
    },
  )

  it('lets every default through its own check', () => {
    for (const option of Object.values<Option<unknown>>(OPTIONS)) {
      for (const value of [option.default, ...Object.values(option.defaultOf ?? {})]) {
        if (value !== undefined) expect([option.flag, option.parse(String(value))]).toEqual([option.flag, value])
      }
    }
  })

  // `npx vitest run packages/server/test/config.test.ts --update` writes the page.
  it('is what docs/reference/configuration.md says', async () => {
    const page = fileURLToPath(new URL('../../../docs/reference/configuration.md', import.meta.url))
    await expect(configurationPage()).toMatchFileSnapshot(page)
  })
})

function configurationPage(): string {
  const lines = [
    '# Configuration',
    '',
    'Written from `packages/server/src/config/options/`; a test keeps the two in step.',
    '',
    'Everything can be set by the environment or by a flag of the command `holdfast`; a flag wins. It is read and checked once, at',
    'the start: what is wrong is named together with what was expected, and the command ends with exit code 2. An empty variable',
    'counts as not set.',
    '',
    '| variable | flag | commands | default | expected |',
    '|---|---|---|---|---|',
  ]
  const options = Object.values<Option<unknown>>(OPTIONS)
  for (const { variable, flag, argument, hint, commands, expected, ...option } of options) {
    const cells = [
      variable ? `\`${variable}\`` : '',
      argument ? `\`<${hint}>\`` : `\`--${flag}${hint ? ` <${hint}>` : ''}\``,
      commandsText(commands),
      defaultsOf(option),
      expected,
    ]
    lines.push(`| ${cells.join(' | ')} |`)
  }
  lines.push('')
  for (const { variable, flag, argument, hint, text } of options) {
    lines.push(`- **${variable ?? (argument ? `<${hint}>` : `--${flag}`)}**: ${text}.`)
  }
  lines.push(
    '',
    '## Exit codes',
    '',
    '| code | meaning |',
    '|---|---|',
    '| 0 | done; for a server: stopped, and everything in flight was answered |',
    '| 1 | tried and failed: Redis or Postgres is away, the port is taken, the database does not fit, a stop had to cut requests |',
    '| 2 | not tried: wrong flags or configuration |',
    '| 130, 143 | asked again to stop (Ctrl-C, SIGTERM) half a second later or more, it ended at once |',
  )
  return `${lines.join('\n')}\n`
}

const ALL_COMMANDS = [...new Set(Object.values<Option<unknown>>(OPTIONS).flatMap(({ commands }) => commands))]

/** A group of which all, or all but one, are meant stands there once. */
function commandsText(commands: readonly CommandName[]): string {
  const groups = [...new Set(commands.flatMap((name) => (name.includes(' ') ? [name.split(' ')[0] as string] : [])))]
  let text: string[] = [...commands]
  for (const group of groups) {
    const isOfGroup = (name: string) => name.startsWith(`${group} `)
    const missing = ALL_COMMANDS.filter((name) => isOfGroup(name) && !commands.includes(name))
    // Those that are not named must not take more room than those that are.
    if (missing.length > 1 && missing.length * 2 > commands.filter(isOfGroup).length) continue
    const but = missing.length > 0 ? ` (not ${missing.map((name) => name.split(' ')[1]).join(', ')})` : ''
    text = [...text.filter((name) => !isOfGroup(name)), `${group} …${but}`]
  }
  return text.join(', ')
}

function defaultsOf(option: Pick<Option<unknown>, 'default' | 'defaultOf' | 'required'>): string {
  const ofCommands = Object.entries(option.defaultOf ?? {}) as [CommandName, unknown][]
  const special = [...new Set(ofCommands.map(([, value]) => value))].map((one) => {
    const commands = ofCommands.filter(([, value]) => value === one).map(([command]) => command)
    return `${commandsText(commands)}: \`${one}\``
  })
  const needed = option.required ? [`required by ${commandsText(option.required)}`] : []
  const general = option.default === undefined ? [] : [`\`${option.default}\``]
  return [...general, ...special, ...needed].join('; ')
}
