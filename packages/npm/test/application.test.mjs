import assert from 'node:assert/strict';
import couchbase from 'couchbase';
import { useCluster } from 'steadfast-cluster';
import { placeOrder, statusOf } from './shop.mjs';

const ORDER = { status: 'paid' };

describe('the shop', () => {
  const cluster = useCluster({ nodes: 3, vbuckets: 64 });
  let connection, orders;

  beforeEach(async () => {
    const { connectionString, username, password, bucket } = cluster();
    connection = await couchbase.connect(connectionString, { username, password });
    orders = connection.bucket(bucket).defaultCollection();
  });
  afterEach(() => connection.close());

  it('loses no order in a rebalance', async () => {
    await cluster().rebalanceIn({ wait: false, vbucketsPerStep: 1, pauseMs: 20 });
    const placed = [];
    while (await cluster().isRebalancing()) {
      const key = `order:${placed.length}`;
      await placeOrder(orders, key, ORDER);
      placed.push(key);
    }
    const written = (await cluster().writes()).map((write) => write.key);
    assert.ok(placed.length > 0);
    assert.deepEqual(written.sort(), placed.sort());
  });

  it('has its orders after a failover', async () => {
    for (let n = 0; n < 50; n++) await placeOrder(orders, `before:${n}`, ORDER);
    await cluster().failOver(1);
    for (let n = 0; n < 50; n++) {
      await placeOrder(orders, `after:${n}`, ORDER);
      assert.equal(await statusOf(orders, `before:${n}`, 60_000), 'paid');
    }
  });

  it('stores an order once if the answer is lost', async () => {
    const condition = { opcode: 'ADD', key: 'o:1', times: 1 };
    const lost = await cluster().withFault('cut-after-applying', condition, async () => {
      await placeOrder(orders, 'o:1', ORDER);
    });
    assert.equal(await lost.fired(), 1);
    assert.equal((await cluster().writes('o:1')).length, 1);
  });

  it('asks a busy server again', async () => {
    const condition = { status: 'ETMPFAIL', opcode: 'ADD', times: 2 };
    const busy = await cluster().withFault('answer', condition, async () => {
      await placeOrder(orders, 'o:2', ORDER);
    });
    assert.equal(await busy.fired(), 2);
    assert.equal((await cluster().writes('o:2')).length, 1);
  });

  it('reports an order that cannot be stored', async () => {
    const condition = { opcode: 'ADD', key: 'o:4' };
    await cluster().withFault('cut-before-applying', condition, async () => {
      await assert.rejects(placeOrder(orders, 'o:4', ORDER), couchbase.CouchbaseError);
    });
    assert.deepEqual(await cluster().writes('o:4'), []);
  });

  it('does not block the page if the server is slow', async () => {
    await placeOrder(orders, 'o:3', ORDER);
    await cluster().withFault('hold', { opcode: 'GET', key: 'o:3' }, async () => {
      assert.equal(await statusOf(orders, 'o:3', 200), 'unknown');
    });
    assert.equal(await statusOf(orders, 'o:3', 60_000), 'paid');
  });
});
