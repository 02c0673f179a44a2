#!/usr/bin/env node
// `npm run build`: dependencies, generated code and `dist/` of every package, where they are missing or out of date.
import { main, setUp } from './setup.mjs'

await main(() => setUp())
