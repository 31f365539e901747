// Replicas and durable writes.
'use strict';

const { after, afterEach, before, describe, it } = require('node:test');
const assert = require('node:assert/strict');
const couchbase = require('couchbase');
const { Server, BUCKET } = require('../support/server');

const { DurabilityLevel, MutateInSpec } = couchbase;
const LEVELS = ['Majority', 'MajorityAndPersistOnMaster', 'PersistToMajority'];

describe('replicas and durability', () => {
  let server;
  let cluster;
  let collection;

  before(async () => {
    server = await Server.start('--nodes', '3', '--vbuckets', '64');
    cluster = await server.connect();
    collection = cluster.bucket(BUCKET).defaultCollection();
  });

  afterEach(async () => {
    await server.call('DELETE', '/faults');
    await server.call('POST', `/buckets/${BUCKET}/flush`);
  });

  after(async () => {
    await cluster?.close();
    await server.stop();
  });

  for (const level of LEVELS) {
    it(`every mutation can ask for ${level}`, async () => {
      const durabilityLevel = DurabilityLevel[level];
      const options = { durabilityLevel };
      const { next } = await server.journal();
      await collection.insert('k', 1, options);
      await collection.upsert('k', 2, options);
      await collection.replace('k', { n: 3 }, options);
      await collection.mutateIn('k', [MutateInSpec.increment('n', 1)], options);
      assert.deepEqual((await collection.get('k')).content, { n: 4 });
      await collection.remove('k', options);
      const binary = collection.binary();
      assert.equal((await binary.increment('c', 1, { initial: 5, ...options })).value, 5);
      assert.equal((await binary.decrement('c', 1, options)).value, 4);
      await collection.upsert('t', 'b', { transcoder: new couchbase.RawStringTranscoder() });
      await binary.append('t', 'c', options);
      await binary.prepend('t', 'a', options);
      const { entries } = await server.journal(next);
      assert.deepEqual(entries.map((entry) => entry.key).join(''), 'kkkkkccttt');
    });
  }

  it('client-side durability observes the copies', async () => {
    const options = { durabilityPersistTo: 1, durabilityReplicateTo: 1 };
    await collection.upsert('k', 1, options);
    await collection.remove('k', options);
  });

  it('durability that the bucket cannot give is impossible', async () => {
    await server.call('POST', '/buckets', { name: 'three', replicas: 3, vbuckets: 64 });
    try {
      const three = cluster.bucket('three').defaultCollection();
      await assert.rejects(
        three.upsert('k', 1, { durabilityLevel: DurabilityLevel.Majority }),
        couchbase.DurabilityImpossibleError,
      );
      await three.upsert('k', 1);
    } finally {
      await server.call('DELETE', '/buckets/three');
    }
  });

  it('a durable write whose replica does not answer is ambiguous, and keeps others out meanwhile', async () => {
    await collection.upsert('k', 0);
    const holds = [];
    for (const node of [0, 1, 2]) {
      holds.push((await server.call('POST', '/holds', { what: 'replication', node })).id);
    }
    try {
      const durable = assert.rejects(
        collection.upsert('k', 1, { durabilityLevel: DurabilityLevel.Majority, timeout: 3_000 }),
        (error) =>
          error instanceof couchbase.DurabilityAmbiguousError || error instanceof couchbase.AmbiguousTimeoutError,
      );
      await waitFor(async () => {
        try {
          await collection.upsert('k', 2, { timeout: 200 });
          return false;
        } catch (error) {
          return error.context.retry_reasons.some((reason) => reason.includes('sync_write_in_progress'));
        }
      });
      await durable;
    } finally {
      for (const hold of holds) {
        await server.call('DELETE', `/holds/${hold}`);
      }
    }
  });

  it('replicas have the document too', async () => {
    await collection.upsert('k', { a: 1 });
    assert.deepEqual((await collection.getAnyReplica('k')).content, { a: 1 });
    const copies = await collection.getAllReplicas('k');
    assert.deepEqual(copies.map((copy) => copy.isReplica).sort(), [false, true]);
    for (const copy of copies) {
      assert.deepEqual(copy.content, { a: 1 });
    }
  });

  it('a document that no copy has is unretrievable', async () => {
    await assert.rejects(collection.getAnyReplica('none'), couchbase.DocumentUnretrievableError);
  });

  it('a replica answers while its active node is down', async () => {
    await collection.upsert('k', 1);
    const { entries } = await server.journal();
    const { node } = entries.filter((entry) => entry.key === 'k').at(-1);
    await server.topology('crash', { node });
    try {
      const found = await collection.getAnyReplica('k', { timeout: 10_000 });
      assert.equal(found.content, 1);
      assert.equal(found.isReplica, true);
    } finally {
      await server.topology('restart', { node });
    }
    assert.equal((await collection.get('k', { timeout: 10_000 })).content, 1);
  });
});

async function waitFor(condition) {
  for (const deadline = Date.now() + 10_000; !(await condition()); ) {
    assert.ok(Date.now() < deadline, `never: ${condition}`);
  }
}
