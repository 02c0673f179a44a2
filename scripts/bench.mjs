#!/usr/bin/env node
// `npm run bench`: see bench/.
import { main } from './setup.mjs'
import { runTypeScript } from './typescript.mjs'

await main((args) => runTypeScript('bench/main.ts', args))
