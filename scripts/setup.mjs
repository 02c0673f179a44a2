// All set-up that a fresh clone lacks, and nothing that is there already. Plain Node: it runs before anything is installed.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withSetupLock } from './setup-lock.mjs'

export const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** In node_modules, so that removing that folder removes what was noted about it as well. */
export const CACHE = join(ROOT, 'node_modules/.cache/holdfast')

const NODE_MAJOR_MIN = 20

/** For the person at the terminal: the message is all that is printed. */
export class SetupError extends Error {}

/** Dependencies installed, sources built. @param {{ build?: boolean }} [options] */
export async function setUp({ build = true } = {}) {
  checkNode()
  const steps = build ? [INSTALL, BUILD] : [INSTALL]
  // Looked at before anything is written: what is complete also runs from a folder that only others may write to.
  if (steps.every(isCurrent)) return
  makeCache()
  await withSetupLock(join(CACHE, 'setup.lock'), () => {
    for (const step of steps) if (!isCurrent(step)) complete(step)
  })
}

/** Runs a script's main function; what goes wrong on purpose is said in one line, without a stack. */
export async function main(run) {
  try {
    process.exitCode = (await run(process.argv.slice(2))) ?? process.exitCode ?? 0
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    console.error(error.message)
    process.exitCode = 1
  }
}

/** A command that came with the dependencies. */
export const tool = (name) => join(ROOT, 'node_modules/.bin', name)

function checkNode() {
  if (Number.parseInt(process.versions.node, 10) >= NODE_MAJOR_MIN) return
  throw new SetupError(
    `Holdfast needs Node ${NODE_MAJOR_MIN} or later; this is ${process.version}. See https://nodejs.org.`,
  )
}

function installInputs() {
  const manifests = ['package.json', 'package-lock.json', ...packageFolders().map((folder) => `${folder}/package.json`)]
  // The platform too: a folder shared between a container and its host holds the binaries of one of them.
  return [process.platform, process.arch, ...manifests.map((path) => contentHash(path))]
}

function install() {
  say('Installing dependencies…')
  // `install`, not `ci`: the lock file knows only the platform that it was written on. Without saving: the clone stays as it was.
  run(npm(), ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error'], 'npm install')
}

/** The npm that runs this script, else the one on PATH. */
function npm() {
  return process.env.npm_execpath?.endsWith('npm-cli.js') ? process.env.npm_execpath : 'npm'
}

function buildInputs() {
  const roots = packageFolders().flatMap((folder) =>
    ['src', 'lua', 'sql', 'tsconfig.json'].map((name) => `${folder}/${name}`),
  )
  const built = packageFolders().map((folder) => existsSync(join(ROOT, folder, 'dist/index.js')))
  const sources = [...roots, 'scripts', 'tsconfig.json', 'tsconfig.base.json', 'package-lock.json'].flatMap(filesUnder)
  return [...built, ...sources.map((path) => `${path} ${contentHash(path)}`)]
}

function compile() {
  say('Building…')
  run(process.execPath, [join(ROOT, 'scripts/generate.mjs')], 'Generating code')
  run(tool('tsc'), ['-b', '--pretty'], 'The build')
}

const INSTALL = { name: 'install', inputs: installInputs, work: install }
const BUILD = { name: 'build', inputs: buildInputs, work: compile }

const stampOf = ({ name }) => join(CACHE, `${name}.stamp`)

function isCurrent(step) {
  return existsSync(stampOf(step)) && readFileSync(stampOf(step), 'utf8') === digest(step.inputs())
}

/** Noted only once it succeeded, and with the inputs as they are then: generated code is part of them. */
function complete(step) {
  step.work()
  makeCache()
  writeFileSync(stampOf(step), digest(step.inputs()))
}

function makeCache() {
  try {
    mkdirSync(CACHE, { recursive: true })
    accessSync(CACHE, constants.W_OK)
  } catch (error) {
    throw new SetupError(
      `Holdfast is not set up yet, and its folder ${ROOT} can't be written (${error.code}): run this once as its owner, or use a copy of your own.`,
    )
  }
}

const digest = (inputs) => createHash('sha256').update(JSON.stringify(inputs)).digest('hex')

function contentHash(path) {
  return createHash('sha256')
    .update(readFileSync(join(ROOT, path)))
    .digest('hex')
}

function packageFolders() {
  const folders = readdirSync(join(ROOT, 'packages')).map((name) => `packages/${name}`)
  return folders.filter((folder) => existsSync(join(ROOT, folder, 'package.json'))).sort()
}

function filesUnder(path) {
  const full = join(ROOT, path)
  if (!existsSync(full)) return []
  if (statSync(full).isFile()) return [path]
  return readdirSync(full)
    .sort()
    .flatMap((name) => filesUnder(`${path}/${name}`))
}

/** Progress goes to standard error: standard output belongs to what is run in the end. */
export function say(line) {
  console.error(line)
}

function run(file, args, what) {
  const script = file.endsWith('.js')
  const { status, error } = spawnSync(script ? process.execPath : file, script ? [file, ...args] : args, {
    cwd: ROOT,
    stdio: ['ignore', 2, 2],
  })
  if (error) throw new SetupError(`${what} could not be run: ${error.message}`)
  if (status !== 0) throw new SetupError(`${what} failed; see above.`)
}
