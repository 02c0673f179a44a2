import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { built } from '../../test/servers.js'
import type { HttpData } from '../http/suite.js'
import { bench } from './command.js'

describe('npm run bench -- http', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-test-'))
  const json = join(folder, 'figures.json')
  let data: HttpData

  beforeAll(async () => {
    await built()
    const { code, output } = await bench('http', '--smoke', '--report', folder, '--json', json)
    expect(output).not.toContain('FAILED')
    expect(code).toBe(0)
    data = JSON.parse(readFileSync(json, 'utf8')).http
  }, 120_000)
  afterAll(() => rmSync(folder, { recursive: true }))

  it('has every acknowledged operation in the journal, and fails none', () => {
    expect(data.acknowledged).toBeGreaterThan(100)
    expect(data.entries).toBeGreaterThanOrEqual(data.acknowledged)
    expect(data.failed).toBe(0)
  })

  it('sets the server against the engine and a bare route together', () => {
    const [{ ways, cpuRatio, speedToEngine }] = data.scenarios as [HttpData['scenarios'][number]]
    const { server, bare, engine } = ways
    expect(cpuRatio.median).toBeCloseTo(server.cpuUs.median / (bare.cpuUs.median + engine.cpuUs.median))
    expect(speedToEngine.median).toBeCloseTo(server.perSecond.median / engine.perSecond.median)
    for (const { p50Ms, p99Ms, cpuUs } of [server, bare, engine]) {
      expect(p99Ms.median).toBeGreaterThanOrEqual(p50Ms.median)
      expect(cpuUs.median).toBeGreaterThan(0)
    }
  })

  it('writes a report', () => {
    const markdown = readFileSync(join(folder, 'http.md'), 'utf8')
    expect(markdown.split('\n').filter((line) => /^\| 4 \| /.test(line))).toHaveLength(4)
  })
})
