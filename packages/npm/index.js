'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs/promises');
const http = require('node:http');
const os = require('node:os');
const path = require('node:path');
const readline = require('node:readline');
const { findBinary, platform } = require('./binary.js');

/** The cluster rejected a request; the message is the cluster's. */
class ControlError extends Error {
  name = 'ControlError';
}

/** A running cluster. It stops with `stop()`, and with this process. */
class Cluster {
  #process;
  #begin;

  constructor(child, facts) {
    this.#process = child;
    this.facts = facts;
    this.connectionString = facts.connect;
    this.tlsConnectionString = facts.connect_tls;
    this.authority = facts.authority;
    this.username = facts.username;
    this.password = facts.password;
    this.bucket = facts.buckets[0];
  }

  static async start(options = {}) {
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'steadfast-'));
    try {
      const line = ['cluster', '--json', ...(await toArguments(options, folder))];
      const child = spawn(findBinary(), line, { stdio: ['ignore', 'pipe', 'pipe'] });
      const cluster = new Cluster(child, await firstLine(child));
      cluster.#begin = (await cluster.call('GET', '/status')).applied_mutations;
      return cluster;
    } finally {
      await fs.rm(folder, { recursive: true });
    }
  }

  /** Stops the cluster. Does nothing the second time. */
  async stop() {
    const child = this.#process;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    const killer = setTimeout(() => child.kill('SIGKILL'), 10_000);
    await ended;
    clearTimeout(killer);
  }

  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    await this.stop();
  }

  /** Injects a fault, until it is removed. */
  async fault(effect, condition = {}) {
    return new Fault(this, await this.call('POST', '/faults', { effect, ...toFields(condition) }));
  }

  /** Injects a fault while a function runs, and returns the fault. */
  async withFault(effect, condition, action) {
    const fault = await this.fault(effect, condition);
    try {
      await action(fault);
    } finally {
      await fault.remove();
    }
    return fault;
  }

  /** The writes that the cluster has applied since its start, oldest first. */
  async writes(key) {
    const entries = [];
    let since = this.#begin;
    for (;;) {
      const page = await this.call('GET', `/journal?since=${since}&limit=10000`);
      if (page.forgotten > this.#begin) {
        throw new ControlError('the journal is full: start the cluster with a larger `journal`');
      }
      entries.push(...page.entries);
      since = page.next;
      if (page.entries.length === 0) {
        return entries.filter((entry) => key === undefined || entry.key === key);
      }
    }
  }

  /** Adds a node and returns its number. `{ wait: false }` returns while documents move. */
  async rebalanceIn(pace = {}) {
    return (await this.#move('rebalance-in', pace)).node;
  }

  /** Moves all documents off a node and removes it. */
  async rebalanceOut(node, pace = {}) {
    await this.#move('rebalance-out', pace, { node });
  }

  /** Spreads documents evenly over the nodes as they are. */
  async rebalance(pace = {}) {
    await this.#move('rebalance', pace);
  }

  /** Starts a rebalance, and waits as long as documents move. */
  async #move(change, pace, of = {}) {
    const body = { ...of, ...toFields(pace), wait: false };
    const started = await this.call('POST', `/topology/${change}`, body);
    const patience = 60_000 + (body.pause_ms ?? 0);
    let [moved, since] = [undefined, Date.now()];
    while (pace.wait ?? true) {
      const last = await this.call('GET', '/topology/rebalance');
      if (last.id !== started.rebalance || last.state === 'done') break;
      if (last.state === 'cancelled') {
        throw new ControlError('the rebalance was cancelled: another one continues from there');
      }
      if (last.moved !== moved) [moved, since] = [last.moved, Date.now()];
      if (Date.now() - since > patience) {
        const far = `${moved} of ${last.total} vbuckets`;
        throw new ControlError(
          `the rebalance goes on, but nothing has moved for ${patience} ms: ${far}; \`wait: false\` does not wait for it`,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return started;
  }

  /** Whether documents are moving. */
  async isRebalancing() {
    return (await this.call('GET', '/topology/rebalance'))?.state === 'running';
  }

  /** Breaks the connections of a node. The cluster map still has it. */
  async crash(node) {
    await this.call('POST', '/topology/crash', { node });
  }

  /** Starts a crashed node, on the same ports and with its documents. */
  async restart(node) {
    await this.call('POST', '/topology/restart', { node });
  }

  /** Removes a node at once, and promotes replicas in its place. */
  async failOver(node) {
    await this.call('POST', '/topology/fail-over', { node });
  }

  /** Brings a failed-over node back, empty. A rebalance gives it documents. */
  async recover(node) {
    await this.call('POST', '/topology/recover', { node });
  }

  /** Lets time pass for the cluster: documents expire, locks end. */
  async advanceClock(seconds) {
    await this.call('POST', '/clock', { advance_ms: Math.round(seconds * 1000) });
  }

  /** Sends any request to the control endpoint. `GET /` lists what there is. */
  async call(method, path, body) {
    const [host, port] = splitAddress(this.facts.control);
    const headers = {
      Authorization: `Bearer ${this.facts.control_token}`,
      'Content-Type': 'application/json',
    };
    // No agent: a connection that is kept alive would keep the process alive.
    const request = http.request({ host, port, method, path, headers, agent: false });
    request.end(body === undefined ? undefined : JSON.stringify(body));
    const [response] = await once(request, 'response');
    response.setEncoding('utf8');
    let text = '';
    for await (const part of response) text += part;
    const isJson = response.headers['content-type']?.startsWith('application/json');
    const result = isJson ? JSON.parse(text) : text;
    if (response.statusCode >= 400) throw new ControlError(result.error ?? text);
    return result;
  }
}

/** A rule that hits requests, until it is removed. */
class Fault {
  #cluster;
  #last;
  #removed = false;

  constructor(cluster, status) {
    this.#cluster = cluster;
    this.#last = status;
  }

  /** How many requests it has hit. */
  async fired() {
    if (!this.#removed) {
      this.#last = await this.#cluster.call('GET', `/faults/${this.#last.id}`);
    }
    return this.#last.fired;
  }

  /** Removes the rule, and releases what it holds. Does nothing the second time. */
  async remove() {
    if (this.#removed) return;
    await this.fired();
    await this.#cluster.call('DELETE', `/faults/${this.#last.id}`);
    this.#removed = true;
  }

  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    await this.remove();
  }
}

/**
 * Starts a cluster before each test and stops it afterwards. Returns a function that returns it.
 *
 * The hooks are those of the test runner; jest and mocha have them as globals.
 */
function useCluster(options = {}, hooks = globalThis) {
  if (typeof hooks.beforeEach !== 'function' || typeof hooks.afterEach !== 'function') {
    throw new ControlError(
      'useCluster needs the hooks of the test runner, which has none as globals: ' +
        "`import { beforeEach, afterEach } from 'vitest'` and " +
        '`useCluster(options, { beforeEach, afterEach })`',
    );
  }
  let cluster;
  hooks.beforeEach(async () => {
    cluster = await Cluster.start(options);
  });
  hooks.afterEach(async () => {
    await cluster?.stop();
    cluster = undefined;
  });
  return () => {
    if (cluster === undefined) {
      throw new ControlError('no cluster runs here: call `cluster()` inside of a test or of a hook');
    }
    return cluster;
  };
}

/** The first line that the cluster prints, or an error if it does not start. */
async function firstLine(child) {
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    said = (said + text).slice(-65_536);
    process.stderr.write(text);
  });
  const failed = new Promise((_, reject) => {
    child.once('error', (error) => {
      const advice = `install steadfast-cluster-${platform} or the program, or set STEADFAST`;
      reject(new ControlError(`cannot run steadfast: ${error.message}; ${advice}`));
    });
    // After `exit`, and after the last of what it says.
    child.once('close', () => {
      reject(new ControlError(`the cluster did not start: ${messageOf(said)}`));
    });
  });
  const lines = readline.createInterface({ input: child.stdout });
  const first = once(lines, 'line').then(([line]) => line);
  const line = await Promise.race([first, failed]);
  // Later the end is no error.
  failed.catch(() => {});
  return JSON.parse(line);
}

/** What the program says about its failure: JSON on one line, with `--json`. */
function messageOf(said) {
  const last = said.trim().split('\n').pop() || 'it printed nothing';
  try {
    return JSON.parse(last).message;
  } catch {
    return last;
  }
}

/** Options as the command line spells them: `usualPorts` is `--usual-ports`. */
async function toArguments(options, folder) {
  const line = [];
  for (let [name, value] of Object.entries(options)) {
    if (name === 'load' && typeof value === 'object' && !Array.isArray(value)) {
      const file = path.join(folder, 'documents.json');
      await fs.writeFile(file, JSON.stringify(value));
      value = file;
    }
    const flag = `--${spelled(name, '-')}`;
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one === true) line.push(flag);
      else if (one !== false && one != null) line.push(flag, String(one));
    }
  }
  return line;
}

/** Fields as the control endpoint spells them: `keyPrefix` is `key_prefix`. */
function toFields(options) {
  return Object.fromEntries(
    Object.entries(options).map(([name, value]) => [spelled(name, '_'), value]),
  );
}

function spelled(name, separator) {
  return name.replace(/[A-Z]/g, (letter) => separator + letter.toLowerCase());
}

function splitAddress(address) {
  const at = address.lastIndexOf(':');
  return [address.slice(0, at).replace(/^\[|\]$/g, ''), Number(address.slice(at + 1))];
}

const startCluster = Cluster.start;

module.exports = { Cluster, ControlError, Fault, startCluster, useCluster };
