import { describe, expect, it } from 'vitest'
import { RedisConnection } from '../../src/redis/index.js'
import { readRedisUrl } from '../../src/redis/url.js'

describe('a URL', () => {
  it.each([
    ['redis+sentinel://a,b:5000/main', { sentinels: [at('a', 26_379), at('b', 5_000)], name: 'main', db: 0 }],
    [
      'redis+sentinel://:p%40ss@[::1]:1/main/3?sentinelUsername=watch&sentinelPassword=s%26t',
      {
        sentinels: [at('::1', 1)],
        name: 'main',
        db: 3,
        password: 'p@ss',
        sentinelUsername: 'watch',
        sentinelPassword: 's&t',
      },
    ],
    [
      'rediss+sentinel://me:secret@a/main',
      {
        sentinels: [at('a', 26_379)],
        name: 'main',
        db: 0,
        username: 'me',
        password: 'secret',
        tls: {},
        sentinelTLS: {},
        enableTLSForSentinelMode: true,
      },
    ],
    ['redis+cluster://a,b:7001', { cluster: [at('a', 6_379), at('b', 7_001)], options: { redisOptions: {} } }],
    [
      'rediss+cluster://me:secret@a:1/0',
      { cluster: [at('a', 1)], options: { redisOptions: { username: 'me', password: 'secret', tls: {} } } },
    ],
    ['redis://me:secret@a:1/2', 'redis://me:secret@a:1/2'],
    ['redis://a/', 'redis://a/'],
    ['rediss://a:1', 'rediss://a:1'],
  ])('%s is understood', (url, target) => {
    expect(readRedisUrl(url)).toEqual(target)
  })

  it.each([
    ['redis+sentinel://a:s3cret@host', /expected the name of the master behind the sentinels, .*, got none$/],
    ['redis+sentinel://a:s3cret@host/main/x', /expected the number of a database behind the name of the master/],
    ['redis+sentinel://a:s3cret@host/main/0/1', /expected the number of a database behind the name of the master/],
    ['redis+sentinel://host/main?password=s3cret', /expected sentinelUsername or sentinelPassword behind the \?/],
    ['redis+sentinel://a:s3cret@host:99999/main', /expected hosts like a:26379,b:26379, got something else at place 1/],
    ['redis+sentinel://host,,s3cret/main', /expected hosts like .*, got something else at place 2/],
    ['redis+cluster://a:s3cret@', /expected hosts like a:6379,b:6379, got something else at place 1/],
    ['redis+cluster://a:s3cret@host/1', /expected no database, since a Cluster has only one, got one/],
    ['redis+cluster://host?s3cret=1', /expected nothing behind a \? in the URL of a Cluster, got something/],
    ['redis+cluster://a:s3cret%zz@host', /expected a % in the URL to be followed by two hexadecimal digits/],
    [
      'redis://a:s3cret@host:1/main',
      /expected the number of a database behind the host, or nothing, got something else/,
    ],
    ['redis://a:s3cret@host:1/-1', /expected the number of a database/],
    ['redis://a:s3cret@host:1/1.5', /expected the number of a database/],
    ['redis://a:s3cret@host:1/1/2', /expected the number of a database/],
    ['rediss://a:s3cret@host:1/12345', /expected the number of a database/],
    ['redis://a:s3cret@host:1?db=main', /redis.db: expected the number of a database, got NaN/],
    ['redis+socket://s3cret', /expected a URL like redis:.* redis\+sentinel:.* redis\+cluster:.*, got something else/],
  ])('%s is not, and the message says why without its password', (url, message) => {
    const attempt = () => new RedisConnection(url)
    expect(attempt).toThrow(message)
    expect(attempt).toThrow(
      expect.objectContaining({ code: 'invalid_argument', argument: expect.stringMatching(/^redis(.db)?$/) }) as Error,
    )
    expect(attempt).not.toThrow(/s3cret/)
  })
})

function at(host: string, port: number) {
  return { host, port }
}
