package steadfast.junit;

import com.couchbase.client.java.json.JsonObject;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * A Couchbase test cluster with faults, as an extension of JUnit.
 *
 * <pre>{@code
 * @RegisterExtension
 * final CouchbaseCluster cluster = CouchbaseCluster.with("--nodes", "3");
 * }</pre>
 *
 * Each test gets a cluster of its own. A static field gives all tests of a class the same one.
 */
public final class CouchbaseCluster
    implements BeforeAllCallback, AfterAllCallback, BeforeEachCallback, AfterEachCallback {
  private final String[] options;
  private ClusterProcess running;
  private boolean shared;

  private CouchbaseCluster(String[] options) {
    this.options = options;
  }

  /** Returns a cluster with options of {@code steadfast cluster}. */
  public static CouchbaseCluster with(String... options) {
    return new CouchbaseCluster(options.clone());
  }

  @Override
  public void beforeAll(ExtensionContext context) throws Exception {
    shared = true;
    running = ClusterProcess.start(options);
  }

  @Override
  public void afterAll(ExtensionContext context) {
    stop();
  }

  @Override
  public void beforeEach(ExtensionContext context) throws Exception {
    if (!shared) {
      running = ClusterProcess.start(options);
    }
  }

  @Override
  public void afterEach(ExtensionContext context) {
    if (!shared) {
      stop();
    }
  }

  public String connectionString() {
    return running.facts.getString("connect");
  }

  /** Returns the connection string for TLS, or null without {@code --tls}. */
  public String tlsConnectionString() {
    return running.facts.getString("connect_tls");
  }

  /** Returns the file of the authority's certificate, or null without {@code --tls}. */
  public String authority() {
    return running.facts.getString("authority");
  }

  public String username() {
    return running.facts.getString("username");
  }

  public String password() {
    return running.facts.getString("password");
  }

  /** Returns the first bucket. */
  public String bucket() {
    return running.facts.getArray("buckets").getString(0);
  }

  /**
   * Injects a fault until it is closed.
   *
   * <pre>{@code
   * try (Fault lost = cluster.fault("cut-after-applying", Map.of("opcode", "ADD", "times", 1))) {
   *   …
   *   assertEquals(1, lost.fired());
   * }
   * }</pre>
   */
  public Fault fault(String effect, Map<String, ?> condition) {
    JsonObject spec = JsonObject.from(condition).put("effect", effect);
    return new Fault(running, running.call("POST", "/faults", spec));
  }

  /** Returns the keys of the writes that the cluster has applied since its start, oldest first. */
  public List<String> writes() {
    List<String> keys = new ArrayList<>();
    for (long since = running.begin; ; ) {
      JsonObject page = running.call("GET", "/journal?since=" + since + "&limit=10000", null);
      if (page.getLong("forgotten") > running.begin) {
        throw new IllegalStateException("the journal is full: start with a larger --journal");
      }
      for (Object entry : page.getArray("entries")) {
        keys.add(((JsonObject) entry).getString("key"));
      }
      since = page.getLong("next");
      if (page.getArray("entries").isEmpty()) {
        return keys;
      }
    }
  }

  /** Returns how often a key was written. */
  public long writes(String key) {
    return writes().stream().filter(key::equals).count();
  }

  /** Adds a node and returns its number, when documents have moved. */
  public int rebalanceIn() {
    return rebalanceIn(Map.of());
  }

  /** Adds a node at a pace: {@code wait}, {@code vbuckets_per_step}, {@code pause_ms}. */
  public int rebalanceIn(Map<String, ?> pace) {
    return running.move("rebalance-in", JsonObject.from(pace)).getInt("node");
  }

  /** Moves all documents off a node and removes it. */
  public void rebalanceOut(int node) {
    running.move("rebalance-out", JsonObject.create().put("node", node));
  }

  /** Spreads documents evenly over the nodes as they are. */
  public void rebalance() {
    running.move("rebalance", JsonObject.create());
  }

  /** Returns whether documents are moving. */
  public boolean isRebalancing() {
    JsonObject last = running.call("GET", "/topology/rebalance", null);
    return last != null && "running".equals(last.getString("state"));
  }

  /** Breaks the connections of a node. The cluster map still has it. */
  public void crash(int node) {
    change("crash", node);
  }

  /** Starts a crashed node, on the same ports and with its documents. */
  public void restart(int node) {
    change("restart", node);
  }

  /** Removes a node at once, and promotes replicas in its place. */
  public void failOver(int node) {
    change("fail-over", node);
  }

  /** Brings a failed-over node back, empty. A rebalance gives it documents. */
  public void recover(int node) {
    change("recover", node);
  }

  /** Lets time pass for the cluster: documents expire, locks end. */
  public void advanceClock(long duration, TimeUnit unit) {
    running.call("POST", "/clock", JsonObject.create().put("advance_ms", unit.toMillis(duration)));
  }

  /** Sends any request to the control endpoint, whose {@code GET /} lists what there is. */
  public JsonObject call(String method, String path, JsonObject body) {
    return running.call(method, path, body);
  }

  /** Stops the cluster, if it has started. */
  private void stop() {
    if (running != null) {
      running.stop();
      running = null;
    }
  }

  private void change(String action, int node) {
    running.call("POST", "/topology/" + action, JsonObject.create().put("node", node));
  }
}
