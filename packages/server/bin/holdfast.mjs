#!/usr/bin/env node
// A file of its own, because npm links commands when it installs: in a clone nothing has been built by then.
import '../dist/cli.js'
