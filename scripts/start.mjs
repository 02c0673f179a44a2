#!/usr/bin/env node
// `npm start`: set-up where it is missing, then `holdfast dev` in this very process, so that signals, exit code and
// kill -9 need no passing on.
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, isAlive } from './processes.mjs'
import { main, ROOT, setUp } from './setup.mjs'

await main(async (args) => {
  await setUp()
  if (process.env.npm_lifecycle_event) endWithNpm()
  const cli = join(ROOT, 'packages/server/dist/cli.js')
  process.argv = [process.execPath, cli, 'dev', ...args]
  await import(pathToFileURL(cli).href)
})

/** Whoever kills npm, however hard, means the server: npm itself could pass on only what can be caught. */
function endWithNpm() {
  const parent = describe(process.ppid)
  // npm runs scripts through a shell, which may have stayed in between.
  const npmPid = /^(ba|da|z|k)?sh$/.test(parent?.name ?? '') ? parent.parent : process.ppid
  const timer = setInterval(() => {
    if (isAlive(npmPid)) return
    clearInterval(timer)
    process.kill(process.pid, 'SIGTERM')
  }, 200)
  timer.unref()
}
