/** `npm run bench -- [suite…] [--quick] [--json FILE]`: what the product does against how else it could be done, in one run. */
import { runBenchmarks } from './harness/command.js'
import { serveAsWorker } from './harness/worker.js'
import { serveBare } from './http/bare.js'
import { makeSaleContender } from './sales/contenders.js'
import { makeContender } from './wallets/contenders/index.js'

// The same program is the harness and, forked by it, a worker: contenders never share an event loop with who measures them.
if (process.argv[2] === 'worker')
  serveAsWorker((name, place) => makeSaleContender(name, place) ?? makeContender(name, place))
else if (process.argv[2] === 'bare') await serveBare()
else process.exitCode = await runBenchmarks(process.argv.slice(2))
