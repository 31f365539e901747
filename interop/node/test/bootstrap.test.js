// Connecting: plain and TLS, with right and wrong credentials.
'use strict';

const { after, before, describe, it } = require('node:test');
const assert = require('node:assert/strict');
const couchbase = require('couchbase');
const { Server, BUCKET } = require('../support/server');

describe('bootstrap', () => {
  let server;

  before(async () => {
    server = await Server.start('--nodes', '3', '--vbuckets', '64', '--tls');
  });

  after(() => server.stop());

  for (const tls of [false, true]) {
    const how = tls ? 'with TLS' : 'plain';

    it(`${how}, with the right credentials, works`, async () => {
      const cluster = await server.connect({ tls });
      try {
        const collection = cluster.bucket(BUCKET).defaultCollection();
        await collection.upsert(how, 1);
        assert.equal((await collection.get(how)).content, 1);
      } finally {
        await cluster.close();
      }
    });

    it(`${how}, with a wrong password, is refused`, async () => {
      await assert.rejects(server.connect({ tls, password: 'wrong' }), couchbase.AuthenticationFailureError);
    });

    it(`${how}, as an unknown user, is refused`, async () => {
      await assert.rejects(server.connect({ tls, username: 'nobody' }), couchbase.AuthenticationFailureError);
    });
  }

  it('with TLS and without the authority, does not connect', async () => {
    await assert.rejects(
      couchbase.connect(server.tlsConnectionString, {
        username: 'Administrator',
        password: 'password',
        timeouts: { bootstrapTimeout: 2_000, connectTimeout: 1_000 },
      }),
      couchbase.CouchbaseError,
    );
  });

  // A server tells only users without rights on all buckets that they may not open it. For an
  // administrator, the SDK waits for the bucket.
  for (const [what, username, bucket, printed] of [
    ['a bucket that does not exist', 'Administrator', 'none', []],
    ['a bucket that is not theirs', 'limited', BUCKET, ['bucket_not_found (10)']],
  ]) {
    it(`${what} cannot be used`, async (test) => {
      await server.call('POST', '/buckets', { name: 'elsewhere', replicas: 0, vbuckets: 16 });
      await server.call('POST', '/users', { name: 'limited', password: 'password', buckets: ['elsewhere'] });
      // The SDK only prints why it could not open the bucket; its operations then time out.
      const { mock } = test.mock.method(console, 'error', () => {});
      const cluster = await server.connect({ username });
      try {
        const collection = cluster.bucket(bucket).defaultCollection();
        await assert.rejects(collection.get('k', { timeout: 1_000 }), couchbase.UnambiguousTimeoutError);
        assert.deepEqual(
          mock.calls.map((call) => [call.arguments[0], call.arguments[1].message]),
          printed.map((message) => [`failed to open bucket: ${bucket}`, message]),
        );
      } finally {
        await cluster.close();
        await server.call('DELETE', '/users/limited');
        await server.call('DELETE', '/buckets/elsewhere');
      }
    });
  }

  it('a user who may only read can read and cannot write', async () => {
    await server.call('POST', '/users', { name: 'reader', password: 'r', buckets: [BUCKET], read_only: true });
    const writer = await server.connect();
    const reader = await server.connect({ username: 'reader', password: 'r' });
    try {
      await writer.bucket(BUCKET).defaultCollection().upsert('readable', 1);
      const collection = reader.bucket(BUCKET).defaultCollection();
      assert.equal((await collection.get('readable')).content, 1);
      await assert.rejects(collection.upsert('readable', 2, { timeout: 2_000 }), couchbase.AuthenticationFailureError);
    } finally {
      await writer.close();
      await reader.close();
      await server.call('DELETE', '/users/reader');
    }
  });
});
