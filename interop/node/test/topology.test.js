// The SDK under load while the topology changes, checked against the journal.
'use strict';

const { afterEach, beforeEach, describe, it } = require('node:test');
const assert = require('node:assert/strict');
const couchbase = require('couchbase');
const { Load, isAmbiguous } = require('../support/load');
const { Server, BUCKET } = require('../support/server');

describe('topology', () => {
  let server;
  let cluster;
  let load;

  beforeEach(async () => {
    server = await Server.start('--nodes', '3', '--vbuckets', '64');
    cluster = await server.connect();
    load = new Load(cluster.bucket(BUCKET).defaultCollection());
    await load.progress();
  });

  afterEach(async () => {
    await load.stop();
    await cluster.close();
    await server.stop();
  });

  async function finish() {
    await load.progress();
    await load.stop();
    load.checkJournal((await server.journal()).entries);
    await load.checkDocuments();
  }

  it('a rebalance in and out under load gives no error, loses nothing, applies nothing twice', async () => {
    const joined = await server.topology('rebalance-in', { vbuckets_per_step: 1, pause_ms: 20 });
    await load.progress();
    await server.topology('rebalance-out', { node: 0, vbuckets_per_step: 1, pause_ms: 20 });
    await finish();
    assert.deepEqual(load.errors, []);
    const { nodes } = await server.call('GET', '/status');
    assert.deepEqual(nodes.map((node) => node.node), [1, 2, joined.node]);
  });

  it('a failover under load gives only errors that say "perhaps", loses nothing, applies nothing twice', async () => {
    await server.topology('fail-over', { node: 2 });
    await load.progress();
    await server.topology('recover', { node: 2 });
    await server.topology('rebalance', { vbuckets_per_step: 4, pause_ms: 10 });
    await finish();
    assert.deepEqual(load.errors.filter((error) => !isAmbiguous(error)), []);
  });

  it('a crash and a return under load give only errors that say "perhaps"', async () => {
    await server.topology('crash', { node: 1 });
    await server.topology('restart', { node: 1 });
    await finish();
    assert.deepEqual(load.errors.filter((error) => !isAmbiguous(error)), []);
  });

  it('a crash that ends in a failover and a new node is survived', async () => {
    await server.topology('crash', { node: 1 });
    await server.topology('fail-over', { node: 1 });
    // The SDK sets operations for a node that it cannot reach aside, and takes them up again when
    // it has bootstrapped another connection: a map without the node alone does not make it.
    await server.topology('rebalance-in', { vbuckets_per_step: 4, pause_ms: 10 });
    await finish();
    assert.deepEqual(load.errors.filter((error) => !isAmbiguous(error)), []);
  });

  it('a node that is down for good costs its documents an unambiguous timeout', async () => {
    await load.stop();
    const collection = cluster.bucket(BUCKET).defaultCollection();
    const key = load.workers[0].counter;
    const { entries } = await server.journal();
    const { node } = entries.find((entry) => entry.key === key);
    await server.topology('crash', { node });
    await assert.rejects(collection.get(key, { timeout: 1_000 }), couchbase.UnambiguousTimeoutError);
    await server.topology('restart', { node });
    assert.ok((await collection.get(key, { timeout: 10_000 })).content > 0);
  });
});
