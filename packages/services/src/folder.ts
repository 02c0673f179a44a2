import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { forgetFolder, guardFolder } from './guard.js'

/** A temporary folder that is removed with `remove()`, or when this process ends in whatever way. */
export interface ScratchFolder {
  readonly path: string
  remove(): void
}

export function scratchFolder(name: string): ScratchFolder {
  const path = mkdtempSync(join(tmpdir(), `holdfast-${name}-`))
  guardFolder(path)
  // Started by root, Postgres runs as another user, who must be able to pass through here.
  if (process.getuid?.() === 0) chmodSync(path, 0o711)
  return {
    path,
    remove() {
      rmSync(path, { recursive: true, force: true, maxRetries: 5 })
      forgetFolder(path)
    },
  }
}
