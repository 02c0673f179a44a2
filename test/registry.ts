/**
 * A registry of npm packages on loopback that has what is installed in this repository, and nothing else: `npm install` does all that it
 * does for a user, without the network.
 */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)
const TARBALL_MAX_BYTES = 256 * 1024 * 1024

interface Installed {
  readonly folder: string
  readonly manifest: { name: string; version: string }
}

export interface Registry {
  readonly url: string
  close(): void
}

export async function startRegistry(root: string): Promise<Registry> {
  const installed = installedUnder(join(root, 'node_modules'))
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? '/', 'http://registry').pathname).slice(1)
    answer(installed, path, url, response).catch((error) => response.writeHead(500).end(String(error)))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** `name` tells of a package, `name/version.tgz` is one. */
async function answer(installed: readonly Installed[], path: string, url: string, response: ServerResponse) {
  const tarball = /^(.+)\/([^/]+)\.tgz$/.exec(path)
  const found = installed.filter(({ manifest }) => manifest.name === (tarball?.[1] ?? path))
  const wanted = tarball ? found.find(({ manifest }) => manifest.version === tarball[2]) : found[0]
  if (!wanted) {
    response.writeHead(404).end('{}')
    return
  }
  if (tarball) {
    response.end(await packed(wanted.folder))
    return
  }
  const versions = found.map(({ manifest }) => [
    manifest.version,
    { ...manifest, dist: { tarball: `${url}/${manifest.name}/${manifest.version}.tgz` } },
  ])
  const latest = wanted.manifest.version
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ name: path, 'dist-tags': { latest }, versions: Object.fromEntries(versions) }))
}

async function packed(folder: string): Promise<Buffer> {
  const args = ['-cz', '--exclude=./node_modules', '--transform=s,^\\.,package,', '-C', folder, '.']
  const tar = execute('tar', args, { encoding: 'buffer', maxBuffer: TARBALL_MAX_BYTES })
  // A clone that another test makes meanwhile links to the same files: they are what they were, and changed in the eyes of tar.
  const { stdout } = await tar.catch((error) =>
    error.code === 1 ? (error as { stdout: Buffer }) : Promise.reject(error),
  )
  return stdout
}

/** Those of packages that need another version than the rest have it in a folder of their own. */
function installedUnder(modules: string): Installed[] {
  if (!existsSync(modules)) return []
  return readdirSync(modules).flatMap((name) => {
    if (name.startsWith('.')) return []
    const folder = join(modules, name)
    if (name.startsWith('@')) return readdirSync(folder).flatMap((member) => packageIn(join(folder, member)))
    return packageIn(folder)
  })
}

function packageIn(folder: string): Installed[] {
  const file = join(folder, 'package.json')
  if (!existsSync(file)) return []
  const manifest = JSON.parse(readFileSync(file, 'utf8')) as Installed['manifest']
  return [{ folder, manifest }, ...installedUnder(join(folder, 'node_modules'))]
}
