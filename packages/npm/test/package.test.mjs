// The package itself: starting, options, faults, and the end.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import couchbase from 'couchbase';
import { ControlError, startCluster, useCluster } from 'steadfast-cluster';

describe('a cluster', () => {
  const cluster = useCluster({ vbuckets: 64 });

  it('says what to do without hooks, and outside of a test', () => {
    assert.throws(() => useCluster({}, {}), /hooks of the test runner.*vitest/);
    const hook = () => undefined;
    const outside = useCluster({}, { beforeEach: hook, afterEach: hook });
    assert.throws(() => outside(), /inside of a test/);
  });

  it('says why a cluster does not start', async () => {
    await assert.rejects(startCluster({ nodes: 0 }), /did not start.*nodes/);
  });

  it('waits for a rebalance', async () => {
    const node = await cluster().rebalanceIn({ vbucketsPerStep: 64, pauseMs: 1 });
    assert.equal(await cluster().isRebalancing(), false);
    await cluster().rebalanceOut(node);
  });

  it('starts with buckets, collections, users and documents', async () => {
    const own = await startCluster({
      bucket: ['travel', 'other'],
      collection: 'inventory.airline',
      user: 'app:secret',
      tls: true,
      load: { k: { a: 1 } },
    });
    assert.deepEqual([own.username, own.bucket], ['app', 'travel']);
    const { username, password } = own;
    const trustStorePath = own.authority;
    const security = { trustStorePath };
    const connection = await couchbase.connect(own.tlsConnectionString, { username, password, security });
    const travel = connection.bucket('travel');
    assert.deepEqual((await travel.defaultCollection().get('k')).content, { a: 1 });
    await travel.scope('inventory').collection('airline').upsert('a', 1);
    // Documents from the start are not writes of the application.
    assert.deepEqual((await own.writes()).map((write) => write.key), ['a']);
    await connection.close();
    await own.stop();
    await own.stop();
    assert.ok(!fs.existsSync(own.authority));
  });

  it('removes a fault after its function, also if that fails', async () => {
    const failing = cluster().withFault('hold', { opcode: 'GET' }, () => {
      throw new Error('on purpose');
    });
    await assert.rejects(failing, /on purpose/);
    assert.deepEqual(await cluster().call('GET', '/faults'), []);
  });

  it('has nodes that join, crash, return and leave', async () => {
    const up = async () => (await cluster().call('GET', '/status')).nodes.map((node) => node.up);
    assert.equal(await cluster().rebalanceIn({ pauseMs: 0 }), 1);
    await cluster().crash(1);
    assert.deepEqual(await up(), [true, false]);
    await cluster().restart(1);
    assert.deepEqual(await up(), [true, true]);
    await cluster().failOver(1);
    await cluster().recover(1);
    await cluster().rebalance({ pauseMs: 0 });
    await cluster().rebalanceOut(0, { pauseMs: 0 });
    assert.equal(await cluster().isRebalancing(), false);
    await cluster().advanceClock(3600);
  });

  it('passes errors on', async () => {
    await assert.rejects(cluster().crash(9), { name: 'ControlError', message: 'there is no node 9' });
    await assert.rejects(cluster().fault('explode'), /is not an effect/);
    await assert.rejects(startCluster({ nodes: 0 }), ControlError);
    assert.match(await cluster().call('GET', '/'), /GET {4}\/status/);
  });

  it('ends with its process', async () => {
    const script = `require('steadfast-cluster').startCluster().then((c) => console.log(c.facts.control));`;
    const options = { cwd: import.meta.dirname, stdio: ['ignore', 'pipe', 'inherit'] };
    const parent = spawn(process.execPath, ['-e', script], options);
    const [printed] = await once(parent.stdout, 'data');
    const port = Number(String(printed).trim().split(':').at(-1));
    assert.ok(await isOpen(port));
    parent.kill('SIGKILL');
    while (await isOpen(port)) await sleep(20);
  });
});

/** Whether a connection to a port of this machine is accepted. */
async function isOpen(port) {
  const socket = net.connect(port, '127.0.0.1');
  const opened = await once(socket, 'connect').then(() => true, () => false);
  socket.destroy();
  return opened;
}
