#!/usr/bin/env node
'use strict';

const { spawnSync } = require('node:child_process');
const { findBinary } = require('./binary.js');

const ended = spawnSync(findBinary(), process.argv.slice(2), { stdio: 'inherit' });
if (ended.error) {
  console.error(`cannot run steadfast: ${ended.error.message}; install it, or set STEADFAST`);
  process.exit(127);
}
process.exit(ended.status ?? 1);
