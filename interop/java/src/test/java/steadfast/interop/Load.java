package steadfast.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.couchbase.client.core.error.CouchbaseException;
import com.couchbase.client.java.Collection;
import com.couchbase.client.java.json.JsonObject;
import com.couchbase.client.java.kv.GetOptions;
import com.couchbase.client.java.kv.IncrementOptions;
import com.couchbase.client.java.kv.MutationResult;
import com.couchbase.client.java.kv.UpsertOptions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;

/**
 * A workload during topology changes. Each worker upserts and reads its own keys, and counts on its
 * own counter. It records the CAS of every acknowledged write, to compare with the journal.
 */
final class Load {
  private final Collection collection;
  private final AtomicLong operations = new AtomicLong();
  private final List<Worker> workers = new ArrayList<>();
  private volatile boolean stopping;

  Load(Collection collection) throws InterruptedException {
    this.collection = collection;
    for (int number = 0; number < 4; number++) {
      Worker worker = new Worker(number);
      workers.add(worker);
      worker.start();
    }
    progress();
  }

  /** Waits until 200 operations more are done. */
  void progress() throws InterruptedException {
    long goal = operations.get() + 200;
    long deadline = System.nanoTime() + 30_000_000_000L;
    while (operations.get() < goal) {
      assertTrue(System.nanoTime() < deadline, "no progress");
      Thread.sleep(5);
    }
  }

  /** Ends the load and compares it with the journal. */
  void stop(Server server, List<Class<?>> allowed) throws InterruptedException {
    stopping = true;
    for (Worker worker : workers) {
      worker.join();
    }
    Map<String, Set<String>> applied = new HashMap<>();
    for (JsonObject entry : server.journal()) {
      String key = entry.getString("key");
      Set<String> ofKey = applied.computeIfAbsent(key, unused -> new HashSet<>());
      assertTrue(ofKey.add(entry.getString("cas")), key + ": a CAS was given twice");
    }
    for (Worker worker : workers) {
      worker.check(applied, allowed);
    }
  }

  private final class Worker extends Thread {
    private final int number;
    private final Map<String, List<String>> acknowledged = new HashMap<>();
    private final Map<String, Integer> unsure = new HashMap<>();
    private final Map<String, Integer> last = new HashMap<>();
    private final List<Exception> errors = new ArrayList<>();

    Worker(int number) {
      this.number = number;
    }

    String counter() {
      return "load:" + number + ":counter";
    }

    @Override
    public void run() {
      var write = UpsertOptions.upsertOptions().timeout(Server.PATIENT);
      var count = IncrementOptions.incrementOptions().initial(1).timeout(Server.PATIENT);
      for (int at = 0; !stopping; at++) {
        int value = at;
        String key = "load:" + number + ":" + at % 100;
        if (wrote(key, () -> collection.upsert(key, value, write))) {
          last.put(key, at);
          readBack(key, at);
        }
        wrote(counter(), () -> collection.binary().increment(counter(), count));
        operations.addAndGet(3);
      }
    }

    private boolean wrote(String key, Supplier<? extends MutationResult> operation) {
      try {
        String cas = String.format("0x%016x", operation.get().cas());
        acknowledged.computeIfAbsent(key, unused -> new ArrayList<>()).add(cas);
        return true;
      } catch (CouchbaseException error) {
        unsure.merge(key, 1, Integer::sum);
        errors.add(error);
        return false;
      }
    }

    void check(Map<String, Set<String>> applied, List<Class<?>> allowed) {
      errors.removeIf(error -> allowed.contains(error.getClass()));
      assertEquals(List.of(), errors);
      acknowledged.forEach(
          (key, written) -> {
            assertTrue(applied.get(key).containsAll(written), key + ": acknowledged, not applied");
            int most = written.size() + unsure.getOrDefault(key, 0);
            assertTrue(applied.get(key).size() <= most, key + ": applied more than " + most);
          });
      last.forEach(
          (key, at) -> {
            int found = read(key);
            boolean later = unsure.containsKey(key) && found > at;
            assertTrue(found == at || later, key + ": has " + found + ", not " + at);
          });
      int least = acknowledged.get(counter()).size();
      int count = read(counter());
      int most = least + unsure.getOrDefault(counter(), 0);
      assertTrue(least <= count && count <= most, counter() + ": " + count + " of " + least);
    }

    private void readBack(String key, int at) {
      try {
        int found = read(key);
        if (found != at) {
          errors.add(new IllegalStateException(key + ": read " + found + ", wrote " + at));
        }
      } catch (CouchbaseException error) {
        errors.add(error);
      }
    }
  }

  private int read(String key) {
    return collection
        .get(key, GetOptions.getOptions().timeout(Server.PATIENT))
        .contentAs(Integer.class);
  }
}
