// Starts `steadfast cluster` for the tests and talks to its control endpoint.
//
// The binary is taken from STEADFAST, or from the debug build of this repository.
'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const readline = require('node:readline');
const couchbase = require('couchbase');

const ROOT = path.resolve(__dirname, '..', '..', '..');
const BINARY = process.env.STEADFAST || path.join(ROOT, 'target', 'debug', 'steadfast');
const USER = 'Administrator';
const PASSWORD = 'password';
const BUCKET = 'default';

/** A running cluster, seen from outside. */
class Server {
  static async start(...options) {
    const child = spawn(BINARY, ['cluster', ...options], { stdio: ['ignore', 'pipe', 'inherit'] });
    const gone = once(child, 'exit');
    // A test process that dies takes its cluster along.
    process.on('exit', () => child.kill('SIGKILL'));
    const facts = {};
    for await (const line of readline.createInterface({ input: child.stdout })) {
      if (line.startsWith('up;')) {
        return new Server(child, gone, facts);
      }
      const [, name, value] = /^(.*?) {2,}(\S+)/.exec(line);
      facts[name] = value;
    }
    throw new Error(`the cluster did not start: ${options}`);
  }

  constructor(child, gone, facts) {
    this.child = child;
    this.gone = gone;
    this.connectionString = facts['connect'];
    this.tlsConnectionString = facts['with TLS'];
    this.authority = facts['authority'];
    this.control = facts['control'];
    this.token = facts['token'];
  }

  async call(method, route, body) {
    const response = await fetch(this.control + route, {
      method,
      headers: { authorization: `Bearer ${this.token}`, 'content-type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(60_000),
    });
    const answer = await response.json();
    if (!response.ok) {
      throw new Error(`${method} ${route}: ${response.status} ${answer.error}`);
    }
    return answer;
  }

  async connect({ username = USER, password = PASSWORD, tls = false, trust = this.authority } = {}) {
    return couchbase.connect(tls ? this.tlsConnectionString : this.connectionString, {
      username,
      password,
      security: tls && trust ? { trustStorePath: trust } : undefined,
      timeouts: { bootstrapTimeout: 10_000 },
    });
  }

  async stop() {
    this.child.kill('SIGINT');
    const killer = setTimeout(() => this.child.kill('SIGKILL'), 10_000);
    await this.gone;
    clearTimeout(killer);
    if (this.authority && fs.existsSync(this.authority)) {
      throw new Error(`the cluster left ${this.authority} behind`);
    }
  }
}

module.exports = { Server, BUCKET, USER, PASSWORD };
