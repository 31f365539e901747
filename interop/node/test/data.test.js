// Operations on whole documents.
'use strict';

const { after, afterEach, before, describe, it } = require('node:test');
const assert = require('node:assert/strict');
const couchbase = require('couchbase');
const { Server, BUCKET } = require('../support/server');

describe('documents', () => {
  let server;
  let cluster;
  let collection;

  before(async () => {
    server = await Server.start('--nodes', '3');
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

  it('upsert and get agree on content and CAS, and there is a mutation token', async () => {
    const stored = await collection.upsert('k', { a: 1 });
    const found = await collection.get('k');
    assert.deepEqual(found.content, { a: 1 });
    assert.equal(found.cas.toString(), stored.cas.toString());
    assert.equal(stored.token.toJSON().bucket_name, BUCKET);
  });

  it('insert makes a document once', async () => {
    await collection.insert('k', 1);
    await assert.rejects(collection.insert('k', 2), couchbase.DocumentExistsError);
    assert.equal((await collection.get('k')).content, 1);
  });

  it('replace and remove want their document and its CAS', async () => {
    const { cas: old } = await collection.upsert('k', 1);
    const { cas } = await collection.replace('k', 2, { cas: old });
    await assert.rejects(collection.replace('k', 3, { cas: old }), couchbase.CasMismatchError);
    await assert.rejects(collection.remove('k', { cas: old }), couchbase.CasMismatchError);
    assert.equal((await collection.get('k')).content, 2);
    await collection.remove('k', { cas });
    const missing = [
      () => collection.get('k'),
      () => collection.replace('k', 1),
      () => collection.remove('k'),
      () => collection.touch('k', 1),
      () => collection.getAndTouch('k', 1),
      () => collection.getAndLock('k', 1),
      () => collection.unlock('k', cas),
      () => collection.binary().append('k', 'x'),
      () => collection.binary().prepend('k', 'x'),
    ];
    for (const operation of missing) {
      await assert.rejects(operation, couchbase.DocumentNotFoundError, operation.toString());
    }
  });

  it('exists says whether', async () => {
    assert.equal((await collection.exists('k')).exists, false);
    const { cas } = await collection.upsert('k', 1);
    const found = await collection.exists('k');
    assert.equal(found.exists, true);
    assert.equal(found.cas.toString(), cas.toString());
    await collection.remove('k');
    assert.equal((await collection.exists('k')).exists, false);
  });

  it('a document expires, and touching it gives it time', async () => {
    await collection.upsert('k', 1, { expiry: 60 });
    assert.ok((await collection.get('k', { withExpiry: true })).expiryTime > 0);
    await collection.upsert('k', 2, { preserveExpiry: true });
    await server.advanceClock(30);
    await collection.touch('k', 60);
    await server.advanceClock(45);
    assert.equal((await collection.getAndTouch('k', 60)).content, 2);
    await server.advanceClock(45);
    assert.equal((await collection.get('k')).content, 2);
    await server.advanceClock(16);
    await assert.rejects(collection.get('k'), couchbase.DocumentNotFoundError);
  });

  it('an upsert without an expiry takes the old one away', async () => {
    await collection.upsert('k', 1, { expiry: 60 });
    await collection.upsert('k', 2);
    await server.advanceClock(61);
    assert.equal((await collection.get('k')).content, 2);
  });

  it('a lock keeps writers out until it is unlocked', async () => {
    await collection.upsert('k', 1);
    const locked = await collection.getAndLock('k', 30);
    assert.equal(locked.content, 1);
    await assert.rejects(collection.upsert('k', 2, { timeout: 300 }), (error) => {
      assert.ok(error instanceof couchbase.TimeoutError, error);
      assert.deepEqual(error.context.retry_reasons, ['key_value_locked']);
      return true;
    });
    await assert.rejects(collection.getAndLock('k', 30, { timeout: 300 }), couchbase.TimeoutError);
    assert.equal((await collection.get('k')).content, 1);
    await collection.unlock('k', locked.cas);
    await assert.rejects(collection.unlock('k', locked.cas), couchbase.DocumentNotLockedError);
    await collection.upsert('k', 2);
  });

  it('whoever has the lock may write, which ends it', async () => {
    await collection.upsert('k', 1);
    const { cas } = await collection.getAndLock('k', 30);
    await collection.replace('k', 2, { cas });
    await collection.upsert('k', 3);
  });

  it('a lock ends by itself', async () => {
    await collection.upsert('k', 1);
    await collection.getAndLock('k', 15);
    await server.advanceClock(16);
    await collection.upsert('k', 2);
  });

  it('counters start where they are told, and stop at zero', async () => {
    const binary = collection.binary();
    await assert.rejects(binary.increment('k', 1), couchbase.DocumentNotFoundError);
    assert.equal((await binary.increment('k', 1, { initial: 10 })).value, 10);
    assert.equal((await binary.increment('k', 5)).value, 15);
    assert.equal((await binary.decrement('k', 4)).value, 11);
    assert.equal((await binary.decrement('k', 20)).value, 0);
    await collection.upsert('k', { no: 'number' });
    await assert.rejects(binary.increment('k', 1), couchbase.DeltaInvalidError);
  });

  it('append and prepend add to the ends', async () => {
    const transcoder = new couchbase.RawStringTranscoder();
    await collection.upsert('k', 'b', { transcoder });
    await collection.binary().append('k', 'c');
    const { cas } = await collection.binary().prepend('k', 'a');
    assert.equal((await collection.get('k', { transcoder })).content, 'abc');
    await collection.binary().append('k', 'd', { cas });
    await assert.rejects(collection.binary().append('k', 'e', { cas }), couchbase.CasMismatchError);
  });

  it('large binary values survive', async () => {
    const transcoder = new couchbase.RawBinaryTranscoder();
    const value = Buffer.alloc(1024 * 1024, Buffer.from(Array.from({ length: 251 }, (_, at) => at)));
    await collection.upsert('k', value, { transcoder });
    assert.deepEqual((await collection.get('k', { transcoder })).content, value);
  });

  it('compressible values survive, and can be changed in place', async () => {
    const value = { text: 'x'.repeat(100_000) };
    await collection.upsert('k', value);
    await collection.mutateIn('k', [couchbase.MutateInSpec.upsert('more', 1)]);
    assert.deepEqual((await collection.get('k')).content, { ...value, more: 1 });
  });

  it('a value that is too large is refused', async () => {
    const transcoder = new couchbase.RawBinaryTranscoder();
    const value = require('node:crypto').randomBytes(20 * 1024 * 1024 + 1);
    await assert.rejects(collection.upsert('k', value, { transcoder, timeout: 10_000 }), couchbase.ValueTooLargeError);
    await assert.rejects(collection.get('k'), couchbase.DocumentNotFoundError);
  });

  it('a projection fetches a part', async () => {
    await collection.upsert('k', { a: { b: 1, c: 2 }, d: 3 });
    assert.deepEqual((await collection.get('k', { project: ['a.b', 'd'] })).content, { a: { b: 1 }, d: 3 });
  });

  it('a temporary failure is retried by the SDK and applied once', async () => {
    const { next } = await server.journal();
    const fault = await server.fault({ opcode: 'SET', key: 'k', times: 3, effect: 'answer', status: 'ETMPFAIL' });
    await collection.upsert('k', 1);
    assert.equal(await server.fired(fault), 3);
    const { entries } = await server.journal(next);
    assert.deepEqual(entries.map((entry) => entry.key), ['k']);
  });

  it('a write that was cut off after it was applied is not sent again', async () => {
    const { next } = await server.journal();
    const fault = await server.fault({ opcode: 'SET', key: 'k', times: 1, effect: 'cut-after-applying' });
    await assert.rejects(collection.upsert('k', 1), couchbase.RequestCanceledError);
    assert.equal(await server.fired(fault), 1);
    const { entries } = await server.journal(next);
    assert.deepEqual(entries.map((entry) => entry.key), ['k']);
    assert.equal((await collection.get('k', { timeout: 10_000 })).content, 1);
  });
});
