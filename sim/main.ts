import { Machines } from './servers.js'
import { simulate } from './simulate.js'

const machines = new Machines()
const from = Number(process.argv[2] ?? 1)
const seeds = Number(process.argv[3] ?? 50)
const t0 = performance.now()
const counts = new Map<string, number>()
let failed = 0
for (let seed = from; seed < from + seeds; seed++) {
  if (process.env.SIM_PROGRESS) console.log(seed)
  const result = await simulate(seed, machines, seeds === 1)
  for (const [k, v] of result.counts) counts.set(k, (counts.get(k) ?? 0) + v)
  if (seeds === 1) console.log(result.trace.join('\n'))
  if (result.problems.length) {
    failed++
    console.log(seed, result.problems.slice(0, 4), result.operations, result.entries, result.simulatedMs)
  }
}
console.log([...counts].sort(), failed, 'failed', (seeds / (performance.now() - t0)) * 1000, '/s')
process.exit(0)
