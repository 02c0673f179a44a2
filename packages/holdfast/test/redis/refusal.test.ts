import { ReplyError } from 'ioredis'
import { describe, expect, it } from 'vitest'
import { classify } from '../../src/redis/refusal.js'

const reply = (message: string) => classify(new ReplyError(message), true, 100)

describe('an answer of the server', () => {
  // Word for word as servers give them, also older ones than the suite runs on.
  it.each([
    ['MOVED 5798 127.0.0.1:7001', 'MOVED', true],
    ['TRYAGAIN Multiple keys request during rehashing of slot', 'TRYAGAIN', true],
    ['CLUSTERDOWN The cluster is down', 'CLUSTERDOWN', true],
    ['LOADING Redis is loading the dataset in memory', 'LOADING', true],
    ["MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", 'MASTERDOWN', true],
    ["READONLY You can't write against a read only replica. script: 9f2c, on @user_script:1.", 'READONLY', true],
    [
      "ERR Error running script (call to f_9f2c): @user_script:1: @user_script: 1: -READONLY You can't write against a read only replica. ",
      'READONLY',
      true,
    ],
    [
      "ERR Error running script (call to f_9f2c): @user_script:3: @user_script: 3: -OOM command not allowed when used memory > 'maxmemory'. ",
      'OOM',
      false,
    ],
    ['NOREPLICAS Not enough good replicas to write.', 'NOREPLICAS', false],
    ['MISCONF Redis is configured to save RDB snapshots, but it is currently not able to persist', 'MISCONF', false],
    ['NOAUTH Authentication required.', 'NOAUTH', false],
    ["NOPERM this user has no permissions to run the 'evalsha' command", 'NOPERM', false],
    ["NOPERM User app has no permissions to run the 'evalsha' command", 'NOPERM', false],
    ['NOPERM this user has no permissions to access one of the keys used as arguments', 'NOPERM', false],
    ['NOPERM No permissions to access a key', 'NOPERM', false],
    ["ERR unknown command 'evalsha', with args beginning with: '9f2c' '1' 'key' ", 'NOPERM', false],
  ])('that nothing ran: %s', (message, code, again) => {
    expect(reply(message)).toEqual({ kind: 'refused', code, again, reason: message })
  })

  it.each([
    "ERR The user executing the script can't run this command or subcommand script: 9f2c, on @user_script:2.",
    "ERR ACL failure in script: User app has no permissions to run the 'info' command script: on @user_script:2.",
    'ERR Unknown Redis command called from script script: 9f2c, on @user_script:1.',
    'ERR Unknown command called from script script: on @user_script:1.',
  ])('that a command inside of the script is not ours to run: %s', (message) => {
    expect(reply(message)).toEqual({ kind: 'forbidden', code: 'NOPERM', reason: message })
  })

  it.each([
    'ERR user_script:1: oops script: 9f2c, on @user_script:1.',
    'ERR Error running script (call to f_9f2c): @user_script:1: user_script:1: not -READONLY at all',
    'WRONGTYPE Operation against a key holding the wrong kind of value script: 9f2c, on @user_script:1.',
    "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: 9f2c, on @user_script:1.",
    'ERR ACL failure in script: No permissions to access a key script: on @user_script:1.',
    "CROSSSLOT Keys in request don't hash to the same slot",
  ])('that the script failed: %s', (message) => {
    expect(reply(message)).toEqual({ kind: 'broken', reason: message })
  })

  it('behind too many redirections', () => {
    const error = new Error('Too many Cluster redirections. Last error: ReplyError: TRYAGAIN Multiple keys request')
    expect(classify(error, true, 100)).toMatchObject({ kind: 'refused', code: 'TRYAGAIN', again: true })
    const closed = new Error('Too many Cluster redirections. Last error: Error: Connection is closed.')
    expect(classify(closed, true, 100)).toMatchObject({ kind: 'lost' })
  })
})

describe('no answer', () => {
  it.each([
    ['Connection is closed.', true, 'lost', 'the connection broke before the answer'],
    ['Connection is closed.', false, 'unsent', 'the connection broke before it was sent'],
    ['Command timed out', true, 'lost', 'no answer within 100 ms'],
    ['Command timed out', false, 'unsent', 'no connection within 100 ms'],
    ['something new', true, 'lost', 'the connection broke before the answer'],
  ])('%s (sent: %s)', (message, sent, kind, reason) => {
    expect(classify(new Error(message), sent, 100)).toEqual({ kind, reason })
  })
})
