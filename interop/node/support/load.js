// A workload during topology changes, checked against the journal.
'use strict';

const assert = require('node:assert/strict');
const { setTimeout: pause } = require('node:timers/promises');
const couchbase = require('couchbase');

const TIMEOUT = 10_000;

/**
 * Workers that upsert and read back their own keys and count on their own counter.
 *
 * Every write is remembered with the CAS it was acknowledged with, so that the journal can
 * be asked afterwards: each acknowledged write was applied once, and nothing else was
 * applied but what the SDK itself called ambiguous.
 */
class Load {
  constructor(collection, workers = 8) {
    this.collection = collection;
    this.stopping = false;
    this.operations = 0;
    this.errors = [];
    this.workers = Array.from({ length: workers }, (_, number) => ({
      number,
      counter: `load:${number}:counter`,
      counted: 0,
      last: new Map(),
      acknowledged: new Map(),
      unsure: new Map(),
    }));
    this.running = this.workers.map((worker) => this.run(worker));
  }

  async run(worker) {
    for (let at = 0; !this.stopping; at += 1) {
      const key = `load:${worker.number}:${at % 100}`;
      if (await this.write(worker, key, () => this.collection.upsert(key, { at }, { timeout: TIMEOUT }))) {
        worker.last.set(key, at);
        const found = await this.attempt(() => this.collection.get(key, { timeout: TIMEOUT }));
        if (found && found.content.at !== at) {
          this.errors.push(new Error(`${key}: read ${found.content.at}, wrote ${at}`));
        }
      }
      const counted = await this.write(worker, worker.counter, () =>
        this.collection.binary().increment(worker.counter, 1, { initial: 1, timeout: TIMEOUT }),
      );
      worker.counted += counted ? 1 : 0;
      this.operations += 3;
    }
  }

  /** Makes a write, and notes with which CAS it was acknowledged or that nobody knows. */
  async write(worker, key, operation) {
    const note = (notes, value) => notes.set(key, [...(notes.get(key) ?? []), value]);
    const result = await this.attempt(operation, (error) => note(worker.unsure, error));
    if (result) {
      note(worker.acknowledged, hexadecimal(result.cas));
    }
    return Boolean(result);
  }

  async attempt(operation, unsure = () => {}) {
    try {
      return await operation();
    } catch (error) {
      this.errors.push(error);
      unsure(error);
      return undefined;
    }
  }

  /** Waits until so many operations more are done. */
  async progress(operations = 200) {
    const goal = this.operations + operations;
    for (const deadline = Date.now() + 30_000; this.operations < goal; ) {
      assert.ok(Date.now() < deadline, `no progress: ${this.errors[0]}`);
      await pause(5);
    }
  }

  async stop() {
    this.stopping = true;
    await Promise.all(this.running);
  }

  /** The last acknowledged values are there, and the counters add up. */
  async checkDocuments() {
    for (const worker of this.workers) {
      for (const [key, at] of worker.last) {
        const { content } = await this.collection.get(key, { timeout: TIMEOUT });
        // Only a write that nobody knew the end of can have come after the last one.
        const right = worker.unsure.has(key) ? content.at >= at : content.at === at;
        assert.ok(right, `${key}: ${content.at} is there, ${at} was acknowledged last`);
      }
      const { content } = await this.collection.get(worker.counter, { timeout: TIMEOUT });
      const unsure = worker.unsure.get(worker.counter)?.length ?? 0;
      assert.ok(content >= worker.counted, `${worker.counter}: ${content} of ${worker.counted}`);
      assert.ok(content <= worker.counted + unsure, `${worker.counter}: ${content} > ${worker.counted}`);
    }
  }

  /** Each acknowledged write was applied once, and no other that the SDK knew the end of. */
  checkJournal(entries) {
    const applied = new Map();
    for (const entry of entries) {
      applied.set(entry.key, [...(applied.get(entry.key) ?? []), entry.cas]);
    }
    for (const worker of this.workers) {
      for (const [key, acknowledged] of worker.acknowledged) {
        const all = applied.get(key) ?? [];
        const unsure = worker.unsure.get(key)?.length ?? 0;
        const lost = acknowledged.filter((cas) => !all.includes(cas));
        assert.deepEqual(lost, [], `${key}: acknowledged and not applied`);
        assert.equal(new Set(all).size, all.length, `${key}: a CAS was given twice`);
        assert.ok(
          all.length <= acknowledged.length + unsure,
          `${key}: ${acknowledged.length} acknowledged, ${unsure} unsure, ${all.length} applied`,
        );
      }
    }
  }
}

/**
 * Whether the real system gives this error to a write that was in flight when its node went:
 * it may have been applied, so the SDK does not send it again, and says so.
 */
function isAmbiguous(error) {
  return error instanceof couchbase.RequestCanceledError || error instanceof couchbase.AmbiguousTimeoutError;
}

/** A CAS as the journal writes it. */
function hexadecimal(cas) {
  return `0x${BigInt(cas.toString()).toString(16).padStart(16, '0')}`;
}

module.exports = { Load, isAmbiguous, hexadecimal };
