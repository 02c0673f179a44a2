import { beforeAll, describe, expect, it } from 'vitest'
import { freshDatabase, freshRedis } from '../../../test/servers.js'
import { run } from './support/holdfast.js'

let env: Record<string, string>
beforeAll(async () => {
  env = { REDIS_URL: await freshRedis(), DATABASE_URL: await freshDatabase(), USER: 'alice' }
})

const flags = (args: readonly string[], more: Record<string, string> = {}) =>
  run(['flags', ...args], { env: { ...env, ...more } })
const asJson = async (...args: string[]) => {
  const { code, stdout, stderr } = await flags([...args, '--json'])
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}
const RULES =
  '[{"when":[{"attribute":"country","test":"in","value":["DE"]},{"attribute":"plan","test":"exists"}],"serve":5}]'

describe('holdfast flags', () => {
  it('makes a flag, changes parts of it, kills it, and tells who did', async () => {
    expect((await flags(['list'])).stdout).toBe('There are no flags. Make one with: holdfast flags set\n')
    const made = await flags(['set', 'new-checkout', '--percent', '12.5', '--description', 'The one page'])
    expect([made.code, made.stderr]).toEqual([0, ''])
    expect(made.stdout).toMatch(/^flag +state +rules +version +changed \(utc\)\nnew-checkout +off +0 +1 +\d{4}-/)
    expect((await asJson('on', 'new-checkout')).flag).toMatchObject({ on: true, percentage: 12.5, version: 2 })
    await asJson('percent', 'new-checkout', '25')
    await asJson('rules', 'new-checkout', RULES)
    expect(await asJson('get', 'new-checkout')).toMatchObject({
      percentage: 25,
      rules: JSON.parse(RULES),
      description: 'The one page',
    })
    const shown = await flags(['get', 'new-checkout'])
    expect(shown.stdout).toContain('The one page\n0: country in ["DE"] and plan exists: on for 5 %')

    const question = ['check', 'new-checkout', '--subject', 'user-17']
    expect((await flags(question)).stdout).toBe(
      'off: no rule is about this subject; on for 25 %, who stands at 84.63\n',
    )
    expect(await asJson(...question, '--attributes', '{"country":"DE","plan":"pro"}')).toMatchObject({ rule: 0 })
    await asJson('kill', 'new-checkout', '--why', 'payments fail')
    expect((await flags(question)).stdout).toBe('off: it is killed, which beats everything\n')
    expect((await flags(['kill', 'new-checkout'])).stdout).toContain('It was so already.')
    await asJson('unkill', 'new-checkout', '--by', 'bob')
    await asJson('off', 'new-checkout')
    expect((await flags(['list'])).stdout).toMatch(/new-checkout +off +1 +7/)
    expect((await flags(['delete', 'new-checkout'])).stdout).toContain('Its history stays.')

    const { stdout } = await flags(['history', '--flag', 'new-checkout'])
    expect(stdout).toMatch(/^number +time \(utc\) +flag +change +then +by +why\n8 /)
    expect(stdout).toMatch(/\n5 .* kill +killed \(on for 25 %\) +alice +payments fail\n/)
    expect(stdout).toMatch(/\n6 .* unkill +on for 25 % +bob\n/)
    expect(await asJson('list', '--tenant', 'other')).toEqual([])
  })

  it('changes nothing where somebody was faster, or there is no such flag', async () => {
    await asJson('set', 'versioned', '--state', 'on', '--if-version', '0')
    for (const [args, message] of [
      [
        ['off', 'versioned', '--if-version', '999'],
        /^holdfast: versioned was changed by somebody else: it has version \d+/,
      ],
      [['set', 'nothing', '--if-version', '3'], /^holdfast: nothing was changed by somebody else: there is none/],
      [['kill', 'nothing'], /^holdfast: There is no flag nothing of the tenant default/],
      [['check', 'nothing'], /^holdfast: There is no flag nothing/],
      [['get', 'nothing'], /^holdfast: There is no flag nothing/],
      [['rules', 'versioned', '{}'], /^holdfast: rules: expected an array/],
      [['check', 'versioned', '--attributes', '5'], /^holdfast: attributes: expected an object/],
    ] as const) {
      const { code, stdout, stderr } = await flags(args)
      expect([code, stdout]).toEqual([1, ''])
      expect(stderr).toMatch(message)
    }
    expect(await asJson('get', 'versioned')).toMatchObject({ on: true, killed: false })
  })

  it('says what it can not read', async () => {
    for (const [args, message] of [
      [['percent', 'versioned', '100.5'], '<percentage>: expected a number from 0 to 100 with at most two decimals'],
      [['percent', 'versioned', '0.001'], '<percentage>: expected a number'],
      [['rules', 'versioned', 'no'], '<json>: expected a JSON array'],
      [['on', 'New'], '<flag>: expected 1 to 64'],
    ] as const) {
      const { code, stderr } = await flags(args)
      expect([code, stderr]).toEqual([2, expect.stringContaining(message)])
    }
  })

  it('kills also while Redis is away, and says who learns of it how', async () => {
    await asJson('set', 'urgent', '--state', 'on')
    const killed = await flags(['kill', 'urgent'], { REDIS_URL: 'redis://127.0.0.1:1' })
    expect([killed.code, killed.stderr]).toEqual([0, expect.stringContaining('Redis could not be told')])
    expect((await asJson('get', 'urgent')).killed).toBe(true)
  })
})
