/**
 * docs/reference/options.md is made of the types that callers see: names, types, and what the comment above each says. Of a comment of
 * several paragraphs the first is for the page, and its sentence that begins with "Default" has a column of its own.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'

const SOURCES = new URL('../src/', import.meta.url)

/** A type, and where it is below src. */
interface Declared {
  readonly file: string
  readonly type: string
}

interface Section extends Declared {
  readonly heading: string
  /** What it extends, where that has no section of its own. */
  readonly also?: Declared
  /** What stands before the table. */
  readonly text?: string
  /** Not for callers of `connect`. */
  readonly without?: readonly string[]
}

const CONNECT: readonly Section[] = [
  { heading: 'Holdfast.connect', file: 'api/connect.ts', type: 'ConnectOptions' },
  { heading: 'limits', file: 'api/connect.ts', type: 'Limits' },
  { heading: 'redisOptions', file: 'redis/connection.ts', type: 'ConnectionOptions', without: ['telemetry'] },
  {
    heading: 'postgresOptions',
    file: 'postgres/pool.ts',
    type: 'PostgresOptions',
    also: { file: 'postgres/session.ts', type: 'SessionOptions' },
    without: ['telemetry', 'schema'],
  },
  {
    heading: 'telemetry',
    file: 'telemetry/index.ts',
    type: 'Telemetry',
    text: 'What they are told of: [metrics](metrics.md). Nothing here may throw or wait: it is called on the hot path.',
  },
  {
    heading: 'audit',
    file: 'api/audit.ts',
    type: 'BackgroundAudit',
    text: '[Audits and rebuilds](../operating/audit.md).',
  },
  { heading: 'saleAttempts', file: 'api/sale/attempts.ts', type: 'SaleAttemptsOptions' },
  { heading: 'earlyReject', file: 'api/sale/early.ts', type: 'EarlyRejectOptions' },
]

const CALLS: readonly Section[] = [
  {
    heading: 'Every operation',
    file: 'api/tenant.ts',
    type: 'OperationOptions',
    text: 'A refund is `ledger` in any case.',
  },
  { heading: 'Holds', file: 'api/wallet.ts', type: 'HoldOptions' },
  { heading: 'Captures and settles', file: 'api/hold.ts', type: 'ChargeOptions' },
  { heading: 'Extensions', file: 'api/hold.ts', type: 'ExtendOptions' },
  {
    heading: 'Metered sessions',
    file: 'api/terms.ts',
    type: 'SessionTerms',
    text: 'For `wallet.meter`, with those by time or by units: [metered sessions](../guides/metered-sessions.md).',
  },
  { heading: 'Sessions by time', file: 'api/terms.ts', type: 'TimeTerms' },
  { heading: 'Sessions by units', file: 'api/terms.ts', type: 'UnitTerms' },
  { heading: 'Ticks', file: 'api/session.ts', type: 'TickOptions' },
  { heading: 'Streams', file: 'api/stream.ts', type: 'StreamOptions' },
  { heading: 'Transfers', file: 'api/transfer.ts', type: 'TransferOptions' },
  { heading: 'Waiting', file: 'api/waiting.ts', type: 'WaitOptions' },
  { heading: 'Opening a wallet', file: 'api/wallet.ts', type: 'OpenOptions' },
  { heading: 'Reading', file: 'api/reading.ts', type: 'ReadOptions' },
  { heading: 'Pages', file: 'api/reading.ts', type: 'PageOptions' },
  { heading: 'The past', file: 'api/reading.ts', type: 'AtOptions', text: 'One of the two.' },
  { heading: 'Explanations', file: 'api/explain.ts', type: 'ExplainOptions' },
  { heading: 'Wallets', file: 'api/wallet.ts', type: 'WalletsOptions' },
  { heading: 'Locks', file: 'api/exclusive.ts', type: 'ExclusiveOptions' },
  { heading: 'Audits', file: 'api/audit.ts', type: 'AuditOptions' },
  { heading: 'Rebuilds', file: 'api/audit.ts', type: 'RebuildOptions' },
  { heading: 'Findings', file: 'api/audit.ts', type: 'FindingsOptions' },
  { heading: 'Reconciling', file: 'reconcile/reconcile.ts', type: 'ReconcileOptions' },
]
const SECTIONS = [...CONNECT, ...CALLS]

/** Whose calls there are, and by what name pages call one of them. */
const CALLED: readonly (Declared & { readonly name: string })[] = [
  { file: 'api/holdfast.ts', type: 'Holdfast', name: 'hf' },
  { file: 'api/wallet.ts', type: 'Wallet', name: 'wallet' },
  { file: 'api/hold.ts', type: 'HoldRef', name: 'hold' },
  { file: 'api/session.ts', type: 'SessionRef', name: 'session' },
]

/** Those of sales are explained in their guides; the last is one of two that are here. */
const ELSEWHERE = ['SalesOptions', 'SchedulesOptions', 'MeterOptions']

interface Option {
  readonly name: string
  readonly type: string
  readonly required: boolean
  readonly text: string
}

const parsed = new Map<string, ts.SourceFile>()

function sourceOf(file: string): ts.SourceFile {
  let source = parsed.get(file)
  if (!source) {
    source = ts.createSourceFile(file, readFileSync(new URL(file, SOURCES), 'utf8'), ts.ScriptTarget.Latest, true)
    parsed.set(file, source)
  }
  return source
}

function declarationOf({ file, type }: Declared): ts.InterfaceDeclaration {
  const found = sourceOf(file).statements.find((one) => ts.isInterfaceDeclaration(one) && one.name.text === type)
  if (!found) throw new Error(`src/${file}: expected an interface ${type}, got none`)
  return found as ts.InterfaceDeclaration
}

function optionsOf(section: Section): Option[] {
  const declared = section.also ? [section, section.also] : [section]
  const members = declared.flatMap((one) => [...declarationOf(one).members])
  const options = members.map((member): Option => {
    if (!ts.isPropertySignature(member) && !ts.isMethodSignature(member)) throw new Error(member.getText())
    const result = member.type?.getText() ?? ''
    const [comment] = ts.getJSDocCommentsAndTags(member)
    return {
      name: member.name.getText(),
      type: ts.isMethodSignature(member)
        ? `(${member.parameters.map((one) => one.getText()).join(', ')}) => ${result}`
        : result,
      required: !member.questionToken,
      text: ts.getTextOfJSDocComment(comment?.comment as string | undefined)?.split(/\n\s*\n/)[0] ?? '',
    }
  })
  return options.filter(({ name }) => !section.without?.includes(name))
}

/** What it has beside its own: `OperationOptions`, and which of them it does not have. */
function inherited({ heritageClauses }: ts.InterfaceDeclaration): { type: string; without: string[] }[] {
  return (heritageClauses ?? []).flatMap(({ types }) =>
    types.map((one) => {
      const [of, keys] = one.typeArguments ?? []
      if (one.expression.getText() !== 'Omit' || !of || !keys) return { type: one.getText(), without: [] }
      return { type: of.getText(), without: [...keys.getText().matchAll(/'(\w+)'/g)].map(([, key]) => key as string) }
    }),
  )
}

const isStatic = ({ kind }: ts.ModifierLike): boolean => kind === ts.SyntaxKind.StaticKeyword

/** Calls with the types of what they are given: `wallet.hold` → `HoldOptions`. */
function calls(): [call: string, type: string][] {
  return CALLED.flatMap(({ file, type, name }) => {
    const found = sourceOf(file).statements.find((one) => ts.isClassDeclaration(one) && one.name?.text === type)
    const methods = (found as ts.ClassDeclaration).members.filter(ts.isMethodDeclaration)
    return methods
      .filter(({ name, modifiers }) => !ts.isPrivateIdentifier(name) && !modifiers?.some(isStatic))
      .flatMap((method) =>
        method.parameters.flatMap((one): [string, string][] => {
          const given = one.type?.getText().replace(/<.*/, '') ?? ''
          return given.endsWith('Options') ? [[`${name}.${method.name.getText()}`, given]] : []
        }),
      )
  })
}

const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^a-z0-9 -]/g, '')
    .replaceAll(' ', '-')

const listed = (names: readonly string[]): string =>
  names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
const coded = (names: readonly string[]): string[] => names.map((name) => `\`${name}\``)

function linesOf(section: Section, level: string): string[] {
  const takenBy = calls().flatMap(([call, type]) => (type === section.type ? [call] : []))
  const beside = CALLS.includes(section)
    ? inherited(declarationOf(section)).map(({ type, without }) => {
        const { heading } = SECTIONS.find((one) => one.type === type) as Section
        const less = without.length > 0 ? `, without ${listed(coded(without))}` : ''
        return `Beside those of [${heading.toLowerCase()}](#${anchorOf(heading)})${less}.`
      })
    : []
  const before = [takenBy.length > 0 ? `For ${listed(coded(takenBy))}.` : '', section.text ?? '', ...beside]
  const intro = before.filter((text) => text !== '').join(' ')
  return [
    `${level} ${section.heading}`,
    '',
    ...(intro === '' ? [] : [intro, '']),
    '| option | type | default | what it is for |',
    '|---|---|---|---|',
    ...optionsOf(section).map((option) => `| ${cellsOf(option, section).join(' | ')} |`),
    '',
  ]
}

const DEFAULT = /(?:^|\s)Default:? (.*?)\.(?=\s|$)/

function cellsOf({ name, type, required, text }: Option, { type: of }: Section): string[] {
  const plain = text.replaceAll(/\s*\n\s*/g, ' ')
  const byItself = DEFAULT.exec(plain)?.[1]
  const own = of === 'ConnectOptions' && CONNECT.find(({ heading }) => heading === name)
  const cells = [
    own ? `[\`${name}\`](#${anchorOf(name)})` : `\`${name}\``,
    `\`${type}\``,
    required ? 'required' : (byItself ?? '–'),
    plain.replace(DEFAULT, '').trim(),
  ]
  return cells.map((cell) => cell.replaceAll('|', '\\|'))
}

function optionsPage(): string {
  return [
    '# Options of the library',
    '',
    'Written from the types in `packages/holdfast/src/api/` and those that they name; a test keeps the two in step.',
    '',
    'What `Holdfast.connect` takes, and what each call takes. Those of the server are in [configuration](configuration.md), those of',
    '[sales](../guides/sales.md) and of [primitives](../primitives/README.md) on their pages. Times are milliseconds.',
    '',
    'A name that is not here is refused as `invalid_argument`, with those that there are: misspelt, it would be left out in silence. What every',
    "operation takes may be given to each of them, also where it has no effect; but `durability: 'memory'` is refused by `hf.transfer`, which is always",
    '`ledger`. What is `undefined` counts as left out.',
    '',
    ...CONNECT.flatMap((section, at) => linesOf(section, at === 0 ? '##' : '###')),
    '## Calls',
    '',
    ...CALLS.flatMap((section) => linesOf(section, '###')),
  ]
    .join('\n')
    .replace(/\n+$/, '\n')
}

describe('the options of the library', () => {
  it.each(SECTIONS)('say what each is for: $type', (section) => {
    for (const option of optionsOf(section)) {
      const [, , byItself, what] = cellsOf(option, section)
      expect([option.name, what]).toEqual([option.name, expect.stringMatching(/^[A-Z`0-9].+\.$/)])
      expect([option.name, what]).not.toEqual([option.name, expect.stringMatching(/default/i)])
      expect(byItself).not.toBe('')
    }
  })

  it('are all there: those of every call, and of what connect is given', () => {
    const known = [...SECTIONS.map(({ type }) => type), ...ELSEWHERE]
    expect(calls().filter(([, type]) => !known.includes(type))).toEqual([])
    const [connect, ...below] = CONNECT as [Section, ...Section[]]
    const types = new Map(optionsOf(connect).map(({ name, type }) => [name, type]))
    for (const { heading, type } of below) expect(types.get(heading)).toContain(type)
  })

  // `npx vitest run packages/holdfast/test/options.test.ts --update` writes the page.
  it('are what docs/reference/options.md says', async () => {
    const page = fileURLToPath(new URL('../../../docs/reference/options.md', import.meta.url))
    await expect(optionsPage()).toMatchFileSnapshot(page)
  })
})
