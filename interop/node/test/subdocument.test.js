// Operations on parts of documents.
'use strict';

const { after, afterEach, before, describe, it } = require('node:test');
const assert = require('node:assert/strict');
const couchbase = require('couchbase');
const { Server, BUCKET } = require('../support/server');

const { LookupInMacro, LookupInSpec, MutateInMacro, MutateInSpec, StoreSemantics } = couchbase;

describe('subdocuments', () => {
  let server;
  let cluster;
  let collection;

  before(async () => {
    server = await Server.start('--nodes', '2', '--vbuckets', '64');
    cluster = await server.connect();
    collection = cluster.bucket(BUCKET).defaultCollection();
  });

  afterEach(() => server.call('POST', `/buckets/${BUCKET}/flush`));

  after(async () => {
    await cluster?.close();
    await server.stop();
  });

  it('lookupIn gets, counts and checks paths, each with its own end', async () => {
    await collection.upsert('k', { a: { b: [1, 2, 3] }, 'dotted.key': 4 });
    const { content } = await collection.lookupIn('k', [
      LookupInSpec.get('a.b[-1]'),
      LookupInSpec.exists('a.c'),
      LookupInSpec.exists('a.b'),
      LookupInSpec.count('a.b'),
      LookupInSpec.get('`dotted.key`'),
      LookupInSpec.get('missing'),
      LookupInSpec.get('a.b.c'),
      LookupInSpec.get(LookupInMacro.Expiry),
      LookupInSpec.get(''),
    ]);
    assert.equal(content[0].value, 3);
    assert.equal(content[1].value, false);
    assert.equal(content[2].value, true);
    assert.equal(content[3].value, 3);
    assert.equal(content[4].value, 4);
    assert.ok(content[5].error instanceof couchbase.PathNotFoundError, content[5].error);
    assert.ok(content[6].error instanceof couchbase.PathMismatchError, content[6].error);
    assert.equal(content[7].value, 0);
    assert.deepEqual(content[8].value, { a: { b: [1, 2, 3] }, 'dotted.key': 4 });
    await assert.rejects(collection.lookupIn('none', [LookupInSpec.get('a')]), couchbase.DocumentNotFoundError);
  });

  it('lookupIn of a document that is no JSON says so', async () => {
    await collection.upsert('k', 'text', { transcoder: new couchbase.RawStringTranscoder() });
    const { content } = await collection.lookupIn('k', [LookupInSpec.get('a')]);
    assert.ok(content[0].error instanceof couchbase.DocumentNotJsonError, content[0].error);
  });

  it('mutateIn changes all its paths', async () => {
    await collection.upsert('k', { n: 1, l: [2] });
    const { content } = await collection.mutateIn('k', [
      MutateInSpec.upsert('meta', { by: 'me' }, { xattr: true }),
      MutateInSpec.upsert('a.b', 1, { createPath: true }),
      MutateInSpec.insert('c', 2),
      MutateInSpec.replace('n', 10),
      MutateInSpec.increment('n', 5),
      MutateInSpec.decrement('n', 2),
      MutateInSpec.arrayAppend('l', [3, 4], { multi: true }),
      MutateInSpec.arrayPrepend('l', 1),
      MutateInSpec.arrayInsert('l[0]', 0),
      MutateInSpec.arrayAddUnique('l', 9),
      MutateInSpec.remove('c'),
    ]);
    assert.equal(content[4].value, 15);
    assert.equal(content[5].value, 13);
    assert.deepEqual((await collection.get('k')).content, { n: 13, l: [0, 1, 2, 3, 4, 9], a: { b: 1 } });
    const found = await collection.lookupIn('k', [LookupInSpec.get('meta.by', { xattr: true })]);
    assert.equal(found.content[0].value, 'me');
  });

  it('mutateIn refuses as a whole, and says why', async () => {
    await collection.upsert('k', { n: 1, l: [1] });
    const before = await collection.get('k');
    const refused = [
      [MutateInSpec.replace('x.y', 1), couchbase.PathNotFoundError],
      [MutateInSpec.upsert('x.y', 1), couchbase.PathNotFoundError],
      [MutateInSpec.remove('x'), couchbase.PathNotFoundError],
      [MutateInSpec.insert('n', 1), couchbase.PathExistsError],
      [MutateInSpec.arrayAddUnique('l', 1), couchbase.PathExistsError],
      [MutateInSpec.arrayAppend('n', 1), couchbase.PathMismatchError],
      [MutateInSpec.increment('l', 1), couchbase.PathMismatchError],
      [MutateInSpec.upsert('a..b', 1), couchbase.PathInvalidError],
    ];
    for (const [spec, error] of refused) {
      await assert.rejects(collection.mutateIn('k', [MutateInSpec.upsert('z', 1), spec]), error);
    }
    const now = await collection.get('k');
    assert.deepEqual(now.content, { n: 1, l: [1] });
    assert.equal(now.cas.toString(), before.cas.toString());
    await assert.rejects(collection.mutateIn('none', [MutateInSpec.upsert('n', 1)]), couchbase.DocumentNotFoundError);
  });

  it('mutateIn can make its document, and want its CAS', async () => {
    const storeSemantics = StoreSemantics.Upsert;
    const { cas } = await collection.mutateIn('k', [MutateInSpec.upsert('n', 1)], { storeSemantics });
    await assert.rejects(
      collection.mutateIn('k', [MutateInSpec.upsert('n', 2)], { storeSemantics: StoreSemantics.Insert }),
      couchbase.DocumentExistsError,
    );
    await collection.mutateIn('k', [MutateInSpec.upsert('n', 2)], { cas });
    await assert.rejects(collection.mutateIn('k', [MutateInSpec.upsert('n', 3)], { cas }), couchbase.CasMismatchError);
    await collection.mutateIn('i', [MutateInSpec.upsert('n', 1)], { storeSemantics: StoreSemantics.Insert });
    assert.deepEqual((await collection.get('i')).content, { n: 1 });
  });

  it('macros are filled in by the server', async () => {
    await collection.upsert('k', { n: 1 });
    const { cas } = await collection.mutateIn('k', [
      MutateInSpec.upsert('seen.cas', MutateInMacro.Cas, { createPath: true }),
      MutateInSpec.upsert('seen.crc', MutateInMacro.ValueCrc32c, { createPath: true }),
    ]);
    const { content } = await collection.lookupIn('k', [
      LookupInSpec.get('seen.cas', { xattr: true }),
      LookupInSpec.get('seen.crc', { xattr: true }),
      LookupInSpec.get(LookupInMacro.Cas),
    ]);
    // The macro is written in the byte order of the server's memory.
    const swapped = Buffer.from(content[0].value.slice(2), 'hex').reverse().readBigUInt64BE();
    assert.equal(swapped, BigInt(cas.toString()));
    assert.match(content[1].value, /^0x[0-9a-f]{8}$/);
    assert.equal(BigInt(content[2].value), BigInt(cas.toString()));
  });

  it('expiry can come with a mutation, and be kept by one', async () => {
    await collection.upsert('k', { n: 1 });
    await collection.mutateIn('k', [MutateInSpec.upsert('n', 2)], { expiry: 60 });
    await collection.mutateIn('k', [MutateInSpec.upsert('n', 3)], { preserveExpiry: true });
    assert.ok((await collection.get('k', { withExpiry: true })).expiryTime > 0);
    await server.advanceClock(61);
    await assert.rejects(collection.get('k'), couchbase.DocumentNotFoundError);
  });

  it('lookups can go to replicas', async () => {
    await collection.upsert('k', { n: 1 });
    const any = await collection.lookupInAnyReplica('k', [LookupInSpec.get('n')]);
    assert.equal(any.content[0].value, 1);
    const all = await collection.lookupInAllReplicas('k', [LookupInSpec.get('n')]);
    assert.deepEqual(all.map((copy) => copy.isReplica).sort(), [false, true]);
    assert.deepEqual(all.map((copy) => copy.content[0].value), [1, 1]);
  });
});
