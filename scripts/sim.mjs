#!/usr/bin/env node
// `npm run sim`: see sim/.
import { main } from './setup.mjs'
import { runTypeScript } from './typescript.mjs'

await main((args) => runTypeScript('sim/main.ts', args))
