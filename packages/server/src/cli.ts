#!/usr/bin/env node
import { main } from './commands/main.js'

const prefixed = (text: string) => text.replace(/^(?=.)/gm, 'holdfast: ')

const exitCode = await main(process.argv.slice(2), {
  print: (text) => void process.stdout.write(`${text}\n`),
  complain: (text) => void process.stderr.write(`${prefixed(text)}\n`),
  progress: (text) => void process.stderr.write(`${prefixed(text)}\n`),
  environment: process.env,
  ...(process.stdout.isTTY && {
    screen: { columns: () => process.stdout.columns || 80, write: (text: string) => void process.stdout.write(text) },
  }),
})
// Exits rather than waits: a connection that will not close must not keep a stopped server alive.
process.exit(exitCode)
