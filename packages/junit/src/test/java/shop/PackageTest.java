package shop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.couchbase.client.java.Bucket;
import com.couchbase.client.java.Cluster;
import com.couchbase.client.java.json.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.extension.RegisterExtension;
import steadfast.junit.CouchbaseCluster;
import steadfast.junit.Fault;

/** The extension itself: starting, options, faults, and the end. */
@TestMethodOrder(MethodOrderer.MethodName.class)
class PackageTest {
  private static final Path DOCUMENTS = documents();

  @RegisterExtension
  static final CouchbaseCluster shared =
      CouchbaseCluster.with(
          "--bucket", "travel", "--collection", "inventory.airline", "--user", "app:secret",
          "--tls", "--load", DOCUMENTS.toString());

  @RegisterExtension
  final CouchbaseCluster own = CouchbaseCluster.with("--vbuckets", "64");

  @Test
  void aStaticClusterIsSharedAndHasItsContents() {
    assertEquals("app", shared.username());
    assertEquals("travel", shared.bucket());
    assertTrue(Files.exists(Path.of(shared.authority())));
    assertTrue(shared.tlsConnectionString().startsWith("couchbases://"));
    Cluster connection =
        Cluster.connect(shared.connectionString(), shared.username(), shared.password());
    Bucket travel = connection.bucket("travel");
    travel.waitUntilReady(Duration.ofMinutes(1));
    assertEquals(1, travel.defaultCollection().get("k").contentAsObject().getInt("a"));
    travel.scope("inventory").collection("airline").upsert("a", 1);
    connection.disconnect();
    // Documents from the start are not writes of the application.
    assertEquals(List.of("a"), shared.writes());
  }

  @Test
  void bStaticClusterKeepsItsWrites() {
    assertEquals(List.of("a"), shared.writes());
    assertEquals(List.of(), own.writes());
  }

  @Test
  void errorsAreTheClustersSentences() {
    Exception error = assertThrows(IllegalArgumentException.class, () -> own.crash(9));
    assertEquals("there is no node 9", error.getMessage());
    assertThrows(IllegalArgumentException.class, () -> own.fault("explode", Map.of()));
  }

  @Test
  void faultsEndWithTheirBlock() {
    Fault removed;
    try (Fault fault = own.fault("hold", Map.of("opcode", "GET"))) {
      assertEquals(1, own.call("GET", "/status", null).getInt("faults"));
      removed = fault;
    }
    assertEquals(0, own.call("GET", "/status", null).getInt("faults"));
    assertEquals(0, removed.fired());
  }

  @Test
  void nodesJoinCrashReturnAndLeave() {
    assertEquals(1, own.rebalanceIn(Map.of("pause_ms", 0)));
    own.crash(1);
    JsonObject node = own.call("GET", "/status", null).getArray("nodes").getObject(1);
    assertFalse(node.getBoolean("up"));
    own.restart(1);
    own.failOver(1);
    own.recover(1);
    own.rebalance();
    own.rebalanceOut(0);
    assertFalse(own.isRebalancing());
    own.advanceClock(1, TimeUnit.HOURS);
  }

  private static Path documents() {
    try {
      Path path = Files.createTempFile("documents", ".json");
      path.toFile().deleteOnExit();
      return Files.writeString(path, "{\"k\": {\"a\": 1}}");
    } catch (IOException error) {
      throw new ExceptionInInitializerError(error);
    }
  }
}
