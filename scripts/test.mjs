#!/usr/bin/env node
// `npm test`: set-up where it is missing, the whole suite on private servers, and one plain line about its outcome.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { passOnSignals } from './processes.mjs'
import { requireRealRedis } from './real-redis.mjs'
import { CACHE, main, ROOT, setUp } from './setup.mjs'

await main(async (args) => {
  await setUp()
  requireRealRedis()
  const reportFile = join(CACHE, `test-report-${process.pid}.json`)
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`]
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs')
  const child = spawn(process.execPath, [vitest, 'run', ...reporters, ...args], { cwd: ROOT, stdio: 'inherit' })
  passOnSignals(child)
  const [code] = await once(child, 'exit')

  const { passed, failed } = readReport(reportFile)
  rmSync(reportFile, { force: true })
  // A file that can't be loaded, an error outside of any test, a crash: no test has failed, and yet the run has.
  const failedAtLeast = code === 0 ? failed : Math.max(failed, 1)
  console.log(`${passed} passed, ${failedAtLeast} failed`)
  return failedAtLeast === 0 ? 0 : 1
})

function readReport(path) {
  try {
    const report = JSON.parse(readFileSync(path, 'utf8'))
    const brokenFiles = report.testResults.filter(
      (file) => file.status === 'failed' && file.assertionResults.length === 0,
    )
    return { passed: report.numPassedTests, failed: report.numFailedTests + brokenFiles.length }
  } catch {
    return { passed: 0, failed: 0 }
  }
}
