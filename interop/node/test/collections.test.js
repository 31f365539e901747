// Scopes and collections that are created and dropped.
'use strict';

const { after, before, describe, it } = require('node:test');
const assert = require('node:assert/strict');
const couchbase = require('couchbase');
const { Server, BUCKET } = require('../support/server');

describe('collections', () => {
  const scopes = `/buckets/${BUCKET}/scopes`;
  let server;
  let cluster;
  let bucket;

  before(async () => {
    server = await Server.start('--nodes', '2', '--vbuckets', '64');
    cluster = await server.connect();
    bucket = cluster.bucket(BUCKET);
    await server.call('POST', scopes, { name: 's' });
    await server.call('POST', `${scopes}/s/collections`, { name: 'c' });
  });

  after(async () => {
    await cluster?.close();
    await server.stop();
  });

  it('the same key in two collections is two documents', async () => {
    const inside = bucket.scope('s').collection('c');
    await inside.upsert('k', 'inside');
    await bucket.defaultCollection().upsert('k', 'outside');
    assert.equal((await inside.get('k')).content, 'inside');
    assert.equal((await bucket.defaultCollection().get('k')).content, 'outside');
  });

  it('an unknown scope is said to be missing', async () => {
    await assert.rejects(bucket.scope('none').collection('c').get('k'), couchbase.ScopeNotFoundError);
  });

  it('an unknown collection is looked for until the time is up', async () => {
    await assert.rejects(bucket.scope('s').collection('none').get('k', { timeout: 1_000 }), (error) => {
      assert.ok(error instanceof couchbase.UnambiguousTimeoutError, error);
      assert.ok(error.context.retry_reasons.includes('key_value_collection_outdated'), error.context.retry_reasons);
      return true;
    });
  });

  it('a collection that comes meanwhile is found', async () => {
    const upsert = bucket.scope('s').collection('later').upsert('k', 1, { timeout: 10_000 });
    await server.call('POST', `${scopes}/s/collections`, { name: 'later' });
    await upsert;
  });

  it('a collection that is dropped and made again is another one', async () => {
    await server.call('POST', `${scopes}/s/collections`, { name: 'again' });
    const collection = bucket.scope('s').collection('again');
    await collection.upsert('k', 1);
    await server.call('DELETE', `${scopes}/s/collections/again`);
    await server.call('POST', `${scopes}/s/collections`, { name: 'again' });
    await assert.rejects(collection.get('k', { timeout: 10_000 }), couchbase.DocumentNotFoundError);
    await collection.upsert('k', 2);
    assert.equal((await collection.get('k')).content, 2);
  });

  it('a bucket that comes while the client is connected can be opened', async () => {
    await server.call('POST', '/buckets', { name: 'other', replicas: 0, vbuckets: 16 });
    const collection = cluster.bucket('other').defaultCollection();
    await collection.upsert('k', 1);
    assert.equal((await collection.get('k')).content, 1);
    await assert.rejects(bucket.defaultCollection().get('only in other'), couchbase.DocumentNotFoundError);
  });
});
