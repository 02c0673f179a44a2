// A process that starts servers and then ends in the way it is told to: `parent.mjs <servers> <dir>`, then a word on standard input.
import { once } from 'node:events'
import { openDevServices, startPostgres, startRedis, startRedisCluster } from '../dist/index.js'

const [what, dir] = process.argv.slice(2)

const start = {
  dev: async () => {
    const { redis, postgres } = await openDevServices({ dir })
    return {
      pids: [redis.pid, postgres.pid],
      databaseUrl: postgres.url,
      redisUrl: redis.url,
      postgres: postgres.majorVersion,
    }
  },
  temporary: async () => {
    const [postgres, redis] = await Promise.all([startPostgres({ durable: false }), startRedis()])
    return { pids: [postgres.pid, redis.pid], folder: postgres.folder }
  },
  cluster: async () => {
    const { nodes } = await startRedisCluster()
    return { pids: nodes.map((node) => node.pid) }
  },
  paused: async () => {
    const postgres = await startPostgres({ durable: false })
    postgres.pause()
    return { pids: [postgres.pid], folder: postgres.folder }
  },
}

const end = {
  exit: () => process.exit(0),
  throw: () => {
    throw new Error('as the test asked for')
  },
}

try {
  console.log(JSON.stringify(await start[what]()))
} catch (error) {
  console.log(JSON.stringify({ error: error.name, message: error.message }))
  process.exit(1)
}
const [word] = await once(process.stdin.setEncoding('utf8'), 'data')
end[word.trim()]()
