// What the types accept and reject, checked by `npm run types`.
import { startCluster, type Cluster } from 'steadfast-cluster';

export async function accepted(cluster: Cluster): Promise<void> {
  await startCluster({ nodes: 3, bucket: ['a', 'b'], load: { k: { a: 1 } } });
  await cluster.fault('answer', { opcode: 'INSERT', keyPrefix: 'o:', status: 503 });
  await cluster.rebalanceIn({ wait: false, vbucketsPerStep: 1, pauseMs: 20 });
}

export async function rejected(cluster: Cluster): Promise<void> {
  // @ts-expect-error the option is `nodes`
  await startCluster({ node: 3 });
  // @ts-expect-error not a command
  await cluster.fault('hold', { opcode: 'INSRT' });
  // @ts-expect-error not an effect
  await cluster.fault('explode');
  // @ts-expect-error the field is `keyPrefix`
  await cluster.fault('hold', { keyprefix: 'o:' });
  // @ts-expect-error the field is `pauseMs`
  await cluster.rebalance({ pause: 20 });
}
