package shop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static shop.Shop.placeOrder;
import static shop.Shop.statusOf;

import com.couchbase.client.core.error.CouchbaseException;
import com.couchbase.client.java.Cluster;
import com.couchbase.client.java.Collection;
import com.couchbase.client.java.json.JsonObject;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import steadfast.junit.CouchbaseCluster;
import steadfast.junit.Fault;

class ApplicationTest {
  private static final JsonObject ORDER = JsonObject.create().put("status", "paid");
  private static final Duration LONG = Duration.ofMinutes(1);

  @RegisterExtension
  final CouchbaseCluster cluster = CouchbaseCluster.with("--nodes", "3", "--vbuckets", "64");

  private Cluster connection;
  private Collection orders;

  @BeforeEach
  void connect() {
    connection =
        Cluster.connect(cluster.connectionString(), cluster.username(), cluster.password());
    orders = connection.bucket(cluster.bucket()).defaultCollection();
    connection.bucket(cluster.bucket()).waitUntilReady(LONG);
  }

  @AfterEach
  void disconnect() {
    connection.disconnect();
  }

  @Test
  void aRebalanceLosesNoOrder() {
    cluster.rebalanceIn(Map.of("wait", false, "vbuckets_per_step", 1, "pause_ms", 20));
    List<String> placed = new ArrayList<>();
    while (cluster.isRebalancing()) {
      String key = "order:" + placed.size();
      placeOrder(orders, key, ORDER);
      placed.add(key);
    }
    List<String> written = cluster.writes();
    assertFalse(placed.isEmpty());
    assertEquals(placed.size(), written.size());
    assertEquals(new TreeSet<>(placed), new TreeSet<>(written));
  }

  @Test
  void ordersSurviveAFailover() {
    for (int n = 0; n < 50; n++) {
      placeOrder(orders, "before:" + n, ORDER);
    }
    cluster.failOver(1);
    for (int n = 0; n < 50; n++) {
      placeOrder(orders, "after:" + n, ORDER);
      assertEquals("paid", statusOf(orders, "before:" + n, LONG));
    }
  }

  @Test
  void anOrderIsStoredOnceIfTheAnswerIsLost() {
    Map<String, Object> condition = Map.of("opcode", "ADD", "key", "o:1", "times", 1);
    try (Fault lost = cluster.fault("cut-after-applying", condition)) {
      placeOrder(orders, "o:1", ORDER);
      assertEquals(1, lost.fired());
    }
    assertEquals(1, cluster.writes("o:1"));
  }

  @Test
  void aBusyServerIsAskedAgain() {
    Map<String, Object> condition = Map.of("status", "ETMPFAIL", "opcode", "ADD", "times", 2);
    try (Fault busy = cluster.fault("answer", condition)) {
      placeOrder(orders, "o:2", ORDER);
      assertEquals(2, busy.fired());
    }
    assertEquals(1, cluster.writes("o:2"));
  }

  @Test
  void anOrderThatCannotBeStoredIsReported() {
    try (Fault lost = cluster.fault("cut-before-applying", Map.of("opcode", "ADD", "key", "o:4"))) {
      assertThrows(CouchbaseException.class, () -> placeOrder(orders, "o:4", ORDER));
    }
    assertEquals(0, cluster.writes("o:4"));
  }

  @Test
  void aSlowServerDoesNotBlockThePage() {
    placeOrder(orders, "o:3", ORDER);
    try (Fault slow = cluster.fault("hold", Map.of("opcode", "GET", "key", "o:3"))) {
      assertEquals("unknown", statusOf(orders, "o:3", Duration.ofMillis(200)));
    }
    assertEquals("paid", statusOf(orders, "o:3", LONG));
  }
}
