package steadfast.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.couchbase.client.core.cnc.AbstractEvent;
import com.couchbase.client.core.cnc.events.request.RequestNotRetriedEvent;
import com.couchbase.client.core.cnc.events.request.RequestRetryScheduledEvent;
import com.couchbase.client.core.error.CouchbaseException;
import com.couchbase.client.core.error.UnambiguousTimeoutException;
import com.couchbase.client.java.Cluster;
import com.couchbase.client.java.Collection;
import com.couchbase.client.java.json.JsonArray;
import com.couchbase.client.java.json.JsonObject;
import com.couchbase.client.java.kv.GetOptions;
import com.couchbase.client.java.kv.UpsertOptions;
import com.couchbase.client.java.query.QueryOptions;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/**
 * Every fault of `interop/faults/cases.json`, each with a client of its own. The reasons and the
 * number of attempts are written to the file that the property `steadfast.record` names.
 */
class FaultsTest {
  private static final JsonObject FILE = read();
  private static final JsonArray RECORD = JsonArray.create();
  private static Server server;

  private static JsonObject read() {
    try {
      return JsonObject.fromJson(Files.readString(Path.of("../faults/cases.json")));
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  @BeforeAll
  static void start() throws Exception {
    server = Server.start("--nodes", "2", "--vbuckets", "64");
    JsonObject codes = FILE.getObject("error_map");
    codes.getNames().forEach(code -> server.call("PUT", "/error-map/" + code, codes.getObject(code)));
  }

  @AfterAll
  static void stop() throws Exception {
    server.close();
    String record = System.getProperty("steadfast.record");
    if (record != null) {
      Files.writeString(Path.of(record), RECORD.toString());
    }
  }

  @TestFactory
  Stream<DynamicTest> everyFault() {
    JsonArray cases = FILE.getArray("cases");
    List<DynamicTest> tests = new ArrayList<>();
    for (int at = 0; at < cases.size(); at++) {
      JsonObject fault = cases.getObject(at);
      String key = "fault:" + at;
      String name = fault.getString("operation") + ": " + fault.getString("name");
      tests.add(DynamicTest.dynamicTest(name, () -> check(fault, key)));
    }
    return tests.stream();
  }

  private void check(JsonObject fault, String key) throws InterruptedException {
    Cluster cluster = server.connect();
    Collection collection = cluster.bucket(Server.BUCKET).defaultCollection();
    String operation = fault.getString("operation");
    if (operation.equals("get")) {
      collection.upsert(key, 1);
    }
    // Opens the connections, so that only the fault is a reason to retry.
    collection.exists(key);
    for (int node = 0; operation.startsWith("query") && node < 4; node++) {
      cluster.query("SELECT RAW 1");
    }
    var events = new ConcurrentLinkedQueue<String>();
    var ended = new CountDownLatch(1);
    var bus = cluster.environment().eventBus();
    bus.subscribe(
        event -> {
          if (event instanceof RequestRetryScheduledEvent retry && isOf(retry, operation)) {
            events.add(retry.retryReason().name());
          } else if (event instanceof RequestNotRetriedEvent refused) {
            events.add(refused.retryReason().name());
          } else if (event instanceof Ended) {
            ended.countDown();
          }
        });
    boolean scripted = fault.containsKey("script");
    JsonObject rule = JsonObject.from(fault.getObject(scripted ? "script" : "fault").toMap());
    if (operation.equals("get") || operation.equals("upsert")) {
      rule.put("opcode", operation.equals("get") ? "GET" : "SET").put("key", key);
    }
    String rules = scripted ? "/scripts" : "/faults";
    String path = rules + "/" + server.call("POST", rules, rule).getInt("id");

    String outcome = "success";
    try {
      run(fault, cluster, collection, key);
    } catch (CouchbaseException error) {
      outcome = error.getClass().getSimpleName();
    }

    // The bus delivers events in order: those of the operation come before this one.
    bus.publish(new Ended());
    assertTrue(ended.await(10, TimeUnit.SECONDS), "the events did not come");
    Set<String> reasons = new LinkedHashSet<>(events);
    JsonObject counts = server.call("GET", path, null);
    // Before the rule is removed: a held request would be applied then.
    long applied = server.applied(key);
    server.call("DELETE", path, null);
    cluster.disconnect();
    RECORD.add(
        JsonObject.create()
            .put("outcome", outcome)
            .put("attempts", counts.getInt("seen"))
            .put("reasons", JsonArray.from(List.copyOf(reasons))));

    assertTrue(counts.getInt(scripted ? "answered" : "fired") > 0, "the fault did not fire");
    if (fault.containsKey("succeeds")) {
      assertEquals(fault.getBoolean("succeeds"), outcome.equals("success"), outcome);
    }
    if (fault.containsKey("sent")) {
      assertEquals(fault.getInt("sent"), counts.getInt("seen"), "was sent");
    }
    if (operation.equals("upsert")) {
      if (fault.containsKey("applied")) {
        assertEquals(fault.getInt("applied").longValue(), applied, "was applied");
      }
      String unambiguous = UnambiguousTimeoutException.class.getSimpleName();
      assertTrue(applied == 0 || !outcome.equals(unambiguous), "was applied, and " + outcome);
    }
  }

  /** Marks the end of an operation among the events. */
  private static final class Ended extends AbstractEvent {
    Ended() {
      super(Severity.INFO, "steadfast", Duration.ZERO, null);
    }

    @Override
    public String description() {
      return "the operation has ended";
    }
  }

  /** Whether a retry is of the operation, and not of one in the background. */
  private static boolean isOf(RequestRetryScheduledEvent retry, String operation) {
    String request = retry.requestClass().getSimpleName().toLowerCase();
    return request.startsWith(operation.split(",")[0]);
  }

  private static void run(JsonObject fault, Cluster cluster, Collection collection, String key) {
    Duration timeout = Duration.ofMillis(fault.getInt("timeout_ms"));
    String operation = fault.getString("operation");
    switch (operation) {
      case "get" -> collection.get(key, GetOptions.getOptions().timeout(timeout));
      case "upsert" -> collection.upsert(key, 1, UpsertOptions.upsertOptions().timeout(timeout));
      default -> {
        var options = QueryOptions.queryOptions().timeout(timeout);
        cluster.query("SELECT RAW 1", options.readonly(operation.endsWith("read-only")));
      }
    }
  }
}
