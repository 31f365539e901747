package steadfast.interop;

import com.couchbase.client.java.Cluster;
import com.couchbase.client.java.Collection;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.TestInfo;

/** One cluster for the tests of a class that leave it as they found it. */
abstract class ClusterTest {
  static Server server;
  static Cluster cluster;
  static Collection collection;

  /** A key of the test's own. */
  String key;

  @BeforeAll
  static void connect() throws Exception {
    server = Server.start("--nodes", "3", "--replicas", "1", "--tls");
    cluster = server.connect();
    collection = cluster.bucket(Server.BUCKET).defaultCollection();
  }

  @AfterAll
  static void disconnect() {
    cluster.disconnect();
    server.close();
  }

  @BeforeEach
  void name(TestInfo test) {
    key = test.getDisplayName();
  }
}
