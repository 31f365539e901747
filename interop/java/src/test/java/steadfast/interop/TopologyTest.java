package steadfast.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.couchbase.client.core.error.AmbiguousTimeoutException;
import com.couchbase.client.core.error.RequestCanceledException;
import com.couchbase.client.core.error.UnambiguousTimeoutException;
import com.couchbase.client.java.Cluster;
import com.couchbase.client.java.Collection;
import com.couchbase.client.java.json.JsonObject;
import com.couchbase.client.java.kv.GetOptions;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class TopologyTest {
  /** The errors of writes that were in flight when their node went. */
  private static final List<Class<?>> IN_FLIGHT =
      List.of(AmbiguousTimeoutException.class, RequestCanceledException.class);

  private Server own;
  private Cluster cluster;
  private Collection collection;

  @BeforeEach
  void connect() throws Exception {
    own = Server.start("--nodes", "3", "--replicas", "1", "--vbuckets", "64");
    cluster = own.connect();
    collection = cluster.bucket(Server.BUCKET).defaultCollection();
  }

  @AfterEach
  void disconnect() {
    cluster.disconnect();
    own.close();
  }

  private static JsonObject pace(int vbuckets, int pause) {
    return JsonObject.create().put("vbuckets_per_step", vbuckets).put("pause_ms", pause);
  }

  private static JsonObject node(int node) {
    return JsonObject.create().put("node", node);
  }

  @Test
  void aRebalanceInAndOutUnderLoadGivesNoError() throws Exception {
    Load load = new Load(collection);
    own.topology("rebalance-in", pace(1, 20));
    load.progress();
    own.topology("rebalance-out", pace(1, 20).put("node", 0));
    load.progress();
    load.stop(own, List.of());
  }

  @Test
  void aFailoverUnderLoadLosesAndDoublesNothing() throws Exception {
    Load load = new Load(collection);
    own.topology("fail-over", node(2));
    load.progress();
    own.topology("recover", node(2));
    own.topology("rebalance", pace(4, 10));
    load.progress();
    load.stop(own, IN_FLIGHT);
  }

  @Test
  void aCrashAndAReturnUnderLoadLoseAndDoubleNothing() throws Exception {
    Load load = new Load(collection);
    own.topology("crash", node(1));
    own.topology("restart", node(1));
    load.progress();
    load.stop(own, IN_FLIGHT);
  }

  @Test
  void aCrashThatEndsInAFailoverIsSurvived() throws Exception {
    Load load = new Load(collection);
    own.topology("crash", node(1));
    own.topology("fail-over", node(1));
    load.progress();
    own.topology("rebalance-in", pace(4, 10));
    load.progress();
    load.stop(own, IN_FLIGHT);
  }

  @Test
  void aNodeThatIsDownCostsItsDocumentsATimeout() {
    collection.upsert("k", 1);
    var entries = own.journal();
    int down = entries.get(entries.size() - 1).getInt("node");
    own.topology("crash", node(down));
    var brief = GetOptions.getOptions().timeout(Duration.ofSeconds(1));
    assertThrows(UnambiguousTimeoutException.class, () -> collection.get("k", brief));
    own.topology("restart", node(down));
    var patient = GetOptions.getOptions().timeout(Server.PATIENT);
    assertEquals(1, collection.get("k", patient).contentAs(Integer.class));
  }
}
