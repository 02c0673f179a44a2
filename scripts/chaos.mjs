#!/usr/bin/env node
// `npm run chaos`: see chaos/.
import { main } from './setup.mjs'
import { runTypeScript } from './typescript.mjs'

await main((args) => runTypeScript('chaos/main.ts', args))
