/**
 * The folders are the architecture: who may import whom stands in the tables of docs/architecture.md, and nowhere else. They are read
 * from there, so that the page can't say one thing and the code do another.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const LIBRARY = 'packages/holdfast/src'

interface Import {
  readonly from: string
  readonly specifier: string
  readonly typeOnly: boolean
}

interface Rules {
  /** Folder of the library → what it may import: `redis`, or `redis (types)`. */
  readonly folders: ReadonlyMap<string, readonly string[]>
  readonly npm: ReadonlyMap<string, readonly string[]>
  /** Package by its folder → names of our own packages that it may import. */
  readonly packages: ReadonlyMap<string, readonly string[]>
}

const PURE = 'machine'
const BUILT_IN_OF_PURE = 'node:crypto'

function readRules(page: string): Rules {
  const folders = readTable(page, 'folder')
  return {
    folders: column(folders, 2),
    npm: column(folders, 3),
    packages: column(readTable(page, 'place'), 2),
  }
}

/** The rows of the table whose first column has this heading, as cells. */
function readTable(page: string, heading: string): string[][] {
  const lines = page.split('\n')
  const start = lines.findIndex((line) => line.startsWith(`| ${heading} |`))
  if (start < 0) throw new Error(`docs/architecture.md: expected a table with the column ${heading}, got none`)
  const rows: string[][] = []
  for (let i = start + 2; lines[i]?.startsWith('|'); i += 1) {
    rows.push(
      (lines[i] as string)
        .slice(1, -1)
        .split(' | ')
        .map((cell) => cell.trim()),
    )
  }
  return rows
}

function column(rows: readonly string[][], index: number): Map<string, readonly string[]> {
  return new Map(
    rows.map((row) => {
      const names = (row[index] as string).split(', ').filter((name) => name !== '–')
      return [plain(row[0] as string), names.map(plain)]
    }),
  )
}

const plain = (cell: string): string => cell.replaceAll('`', '')

/** Imports, exports from, `import()` of values and of types. */
function importsOf(path: string, source: string): Import[] {
  const found: Import[] = []
  const note = (specifier: ts.Node | undefined, typeOnly: boolean): void => {
    if (specifier && ts.isStringLiteralLike(specifier)) found.push({ from: path, specifier: specifier.text, typeOnly })
  }
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node)) note(node.moduleSpecifier, isTypeImport(node.importClause))
    else if (ts.isExportDeclaration(node)) note(node.moduleSpecifier, node.isTypeOnly)
    else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) note(node.argument.literal, true)
    else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword)
      note(node.arguments[0], false)
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(path, source, ts.ScriptTarget.Latest))
  return found
}

function isTypeImport(clause: ts.ImportClause | undefined): boolean {
  if (!clause) return false
  if (clause.phaseModifier === ts.SyntaxKind.TypeKeyword) return true
  const { name, namedBindings } = clause
  return (
    !name &&
    !!namedBindings &&
    ts.isNamedImports(namedBindings) &&
    namedBindings.elements.every((one) => one.isTypeOnly)
  )
}

/** The folder below `src` that a file lies in; a file in `src` itself is a place of its own. */
function placeOf(path: string): { root: string; place: string } {
  const [packages, name, src, ...rest] = path.split('/')
  return { root: [packages, name, src].join('/'), place: rest[0] as string }
}

const targetOf = ({ from, specifier }: Import): string => normalize(join(dirname(from), specifier))
const isRelative = ({ specifier }: Import): boolean => specifier.startsWith('.')

function violations(files: ReadonlyMap<string, string>, rules: Rules): string[] {
  const imports = [...files].flatMap(([path, source]) => importsOf(path, source))
  const library = imports.filter(({ from }) => from.startsWith(LIBRARY) && placeOf(from).place !== 'index.ts')
  return [
    ...imports.flatMap((one) => [...leavesPackage(one), ...misusesPackage(one, rules)]),
    ...library.flatMap((one) => (isRelative(one) ? crossesFolders(one, rules) : misusesModule(one, rules))),
    ...circles(imports.filter(isRelative)),
  ]
}

function leavesPackage(one: Import): string[] {
  if (!isRelative(one) || targetOf(one).startsWith(`${placeOf(one.from).root}/`)) return []
  return [`${one.from} leaves its package: ${one.specifier}`]
}

function misusesPackage({ from, specifier }: Import, { packages }: Rules): string[] {
  const ours = /^(holdfast|@holdfast\/[^/]+)(\/.*)?$/.exec(specifier)
  if (!ours) return []
  const allowed = packages.get(dirname(placeOf(from).root)) ?? []
  if (!allowed.includes(ours[1] as string)) return [`${from} may not import ${ours[1]}`]
  const exported = ours[2] === undefined || exportsOf(ours[1] as string).includes(`.${ours[2]}`)
  return exported ? [] : [`${from} looks inside ${ours[1]}: ${specifier}`]
}

/** What a package of ours offers below its name: `./stripe402`. */
function exportsOf(name: string): string[] {
  const manifest = join(ROOT, 'packages', name.replace('@holdfast/', ''), 'package.json')
  return Object.keys(JSON.parse(readFileSync(manifest, 'utf8')).exports)
}

function crossesFolders(one: Import, { folders }: Rules): string[] {
  const { place } = placeOf(one.from)
  const target = targetOf(one)
  const to = placeOf(target).place
  if (to === place) return []
  const allowed = folders.get(place) ?? []
  if (!allowed.includes(to)) {
    if (!allowed.includes(`${to} (types)`)) return [`${one.from} may not import ${to}`]
    if (!one.typeOnly) return [`${one.from} may import types of ${to} only`]
  }
  const entered = target === `${LIBRARY}/${to}/index.js` || target.endsWith('.generated.js')
  return entered ? [] : [`${one.from} reaches around ${to}/index.js: ${one.specifier}`]
}

function misusesModule({ from, specifier }: Import, { npm }: Rules): string[] {
  const { place } = placeOf(from)
  if (specifier.startsWith('node:')) {
    return place === PURE && specifier !== BUILT_IN_OF_PURE ? [`${from} may not import ${specifier}`] : []
  }
  return npm.get(place)?.includes(specifier) ? [] : [`${from} may not import ${specifier}`]
}

/** Each circle of folders once, as the way around it. */
function circles(imports: readonly Import[]): string[] {
  const edges = new Map<string, Set<string>>()
  for (const one of imports) {
    const from = folderOf(one.from)
    const to = folderOf(targetOf(one).replace(/\.js$/, '.ts'))
    if (from !== to) edges.set(from, (edges.get(from) ?? new Set()).add(to))
  }
  const done = new Set<string>()
  const found: string[] = []
  const walk = (folder: string, way: readonly string[]): void => {
    const at = way.indexOf(folder)
    if (at >= 0) found.push(`circle: ${[...way.slice(at), folder].join(' → ')}`)
    if (at >= 0 || done.has(folder)) return
    for (const next of edges.get(folder) ?? []) walk(next, [...way, folder])
    done.add(folder)
  }
  for (const folder of edges.keys()) walk(folder, [])
  return found
}

function folderOf(path: string): string {
  const { root, place } = placeOf(path)
  return `${root}/${place}`
}

const page = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8')
const rules = readRules(page)
const sources = new Map(
  readdirSync(join(ROOT, 'packages'))
    .flatMap((name) => sourcesUnder(`packages/${name}/src`))
    .map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]),
)

function sourcesUnder(folder: string): string[] {
  const names = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
  return names.filter((name) => name.endsWith('.ts')).map((name) => `${folder}/${name}`)
}

describe('the layout', () => {
  it('is on the page, folder by folder and package by package', () => {
    const folders = readdirSync(join(ROOT, LIBRARY), { withFileTypes: true }).filter((one) => one.isDirectory())
    expect([...rules.folders.keys()].sort()).toEqual(folders.map(({ name }) => name).sort())
    const packages = readdirSync(join(ROOT, 'packages')).map((name) => `packages/${name}`)
    expect([...rules.packages.keys()].sort()).toEqual(packages.sort())
  })

  it('is kept by every import', () => {
    expect(sources.size).toBeGreaterThan(100)
    expect(violations(sources, rules)).toEqual([])
  })

  it('has no permission that nobody uses', () => {
    const used = new Set<string>()
    for (const [path, source] of sources) {
      if (!path.startsWith(LIBRARY)) continue
      for (const one of importsOf(path, source)) {
        const to = isRelative(one) ? placeOf(targetOf(one)).place : one.specifier
        used.add(`${placeOf(path).place} ${to}`)
      }
    }
    const given = [...rules.folders, ...rules.npm].flatMap(([folder, names]) =>
      names.map((name) => `${folder} ${name.replace(' (types)', '')}`),
    )
    expect(given.filter((one) => !used.has(one))).toEqual([])
  })
})

describe('a violation is found:', () => {
  const found = (path: string, source: string) => violations(new Map([[path, source]]), rules)

  it.each([
    ['the machine reaches for I/O', 'machine/decide.ts', "import { Redis } from 'ioredis'", 'may not import ioredis'],
    ['the machine reads the clock', 'machine/decide.ts', "import 'node:perf_hooks'", 'may not import node:perf_hooks'],
    [
      'a layer knows the one above it',
      'redis/runner.ts',
      "export * from '../engine/index.js'",
      'may not import engine',
    ],
    ['a neighbour is passed by', 'sequencer/reply.ts', "import '../postgres/index.js'", 'may not import postgres'],
    ['also by a type alone', 'redis/keys.ts', "type T = import('../journal/index.js').Entry", 'may not import journal'],
    ['also at run time', 'journal/runs.ts', "await import('../redis/index.js')", 'may not import redis'],
    ['a client is made elsewhere', 'api/holdfast.ts', "import { Cluster } from 'ioredis'", 'may not import ioredis'],
    [
      'types only, and a value',
      'engine/lane.ts',
      "import { Keys, type Place } from '../redis/index.js'",
      'types of redis only',
    ],
    [
      'round an index',
      'api/wallet.ts',
      "import { cutRuns } from '../journal/runs.js'",
      'reaches around journal/index.js',
    ],
  ])('%s', (_, file, source, message) => {
    expect(found(`${LIBRARY}/${file}`, source)).toEqual([expect.stringContaining(message)])
  })

  it.each([
    ['the inside of the library', "import { Engine } from 'holdfast/dist/engine/index.js'", 'looks inside holdfast'],
    ['its sources', "import { Engine } from '../../holdfast/src/engine/index.js'", 'leaves its package'],
  ])('the server uses %s', (_, source, message) => {
    expect(found('packages/server/src/app.ts', source)).toEqual([expect.stringContaining(message)])
  })

  it('and what the library exports below its name may be used', () => {
    const source = "import type { LedgerStore } from 'holdfast/stripe402'"
    expect(found('packages/server/src/app.ts', source)).toEqual([])
  })

  it('the library uses the server', () => {
    expect(found(`${LIBRARY}/api/holdfast.ts`, "import '@holdfast/server'")[0]).toContain(
      'may not import @holdfast/server',
    )
  })

  it('folders import each other in a circle', () => {
    const files = new Map([
      ['packages/server/src/http/problem.ts', "import '../routes/index.js'"],
      ['packages/server/src/routes/index.ts', "import '../health/index.js'"],
      ['packages/server/src/health/index.ts', "import type { Problem } from '../http/problem.js'"],
    ])
    const at = (name: string) => `packages/server/src/${name}`
    const way = ['http', 'routes', 'health', 'http'].map(at).join(' → ')
    expect(violations(files, rules)).toEqual([`circle: ${way}`])
  })

  it('and what is allowed is not', () => {
    const source = "import { type Entry } from '../journal/index.js'\nimport { decide } from '../machine/index.js'"
    expect(found(`${LIBRARY}/engine/fallback.ts`, source)).toEqual([])
  })
})
