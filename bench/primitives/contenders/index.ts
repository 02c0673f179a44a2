import { bloomInMemory, bloomInRedis } from './bloom.js'
import { bucket } from './bucket.js'
import type { Work } from './contender.js'
import { lease } from './lease.js'
import { window } from './window.js'

export type { Contender, Work } from './contender.js'
export const WORKS: readonly Work[] = [window, bucket, lease, bloomInMemory, bloomInRedis]
