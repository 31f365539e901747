// A driver for `steadfast audit couchbase`: the official SDK for Node.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import couchbase from 'couchbase';

const { version } = createRequire(import.meta.url)('couchbase/package.json');
const unsupported = Symbol('unsupported');
let cluster;
let documents;

const operations = {
  async connect(c) {
    await cluster?.close();
    const { username, password, timeout_ms: bootstrapTimeout } = c;
    cluster = await couchbase.connect(c.connection_string, { username, password, timeouts: { bootstrapTimeout } });
    documents = cluster.bucket(c.bucket).defaultCollection();
    await documents.exists('ready', { timeout: c.timeout_ms });
  },
  get: (c, options) => documents.get(c.key, options),
  exists: (c, options) => documents.exists(c.key, options),
  upsert: (c, options) => documents.upsert(c.key, c.value, options),
  insert: (c, options) => documents.insert(c.key, c.value, options),
  replace: (c, options) => documents.replace(c.key, c.value, options),
  remove: (c, options) => documents.remove(c.key, options),
  append: (c, options) => documents.binary().append(c.key, Buffer.from(c.text), options),
  increment: (c, options) => documents.binary().increment(c.key, 1, options),
  touch: (c, options) => documents.touch(c.key, c.expiry_seconds, options),
  lookup: (c, options) => documents.lookupIn(c.key, [couchbase.LookupInSpec.get(c.path)], options),
  mutate: (c, options) => documents.mutateIn(c.key, [couchbase.MutateInSpec.upsert(c.path, c.value)], options),
  query: (c, options) => cluster.query(c.statement, { ...options, readOnly: c.readonly }),
};

async function answer(c) {
  const operation = operations[c.do] ?? (() => unsupported);
  try {
    const result = await operation(c, { timeout: c.timeout_ms });
    return result === unsupported ? { unsupported: true } : { ok: true, sdk: `couchbase ${version} for Node` };
  } catch (error) {
    const said = { AmbiguousTimeoutError: true, UnambiguousTimeoutError: false };
    return { error: error.constructor.name, ambiguous: said[error.constructor.name] };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  process.stdout.write(`${JSON.stringify({ id: command.id, ...(await answer(command)) })}\n`);
}
await cluster?.close();
