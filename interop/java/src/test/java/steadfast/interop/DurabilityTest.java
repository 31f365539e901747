package steadfast.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.couchbase.client.core.error.AmbiguousTimeoutException;
import com.couchbase.client.core.error.CouchbaseException;
import com.couchbase.client.core.error.DurabilityAmbiguousException;
import com.couchbase.client.core.error.DurabilityImpossibleException;
import com.couchbase.client.core.msg.kv.DurabilityLevel;
import com.couchbase.client.java.Cluster;
import com.couchbase.client.java.json.JsonObject;
import com.couchbase.client.java.kv.GetAnyReplicaOptions;
import com.couchbase.client.java.kv.InsertOptions;
import com.couchbase.client.java.kv.MutateInOptions;
import com.couchbase.client.java.kv.MutateInSpec;
import com.couchbase.client.java.kv.RemoveOptions;
import com.couchbase.client.java.kv.ReplaceOptions;
import com.couchbase.client.java.kv.UpsertOptions;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class DurabilityTest extends ClusterTest {
  @ParameterizedTest
  @EnumSource(DurabilityLevel.class)
  void everyMutationCanAskForEveryLevel(DurabilityLevel level) {
    collection.insert("level", 1, InsertOptions.insertOptions().durability(level));
    collection.upsert("level", 2, UpsertOptions.upsertOptions().durability(level));
    var document = JsonObject.create().put("n", 3);
    collection.replace("level", document, ReplaceOptions.replaceOptions().durability(level));
    List<MutateInSpec> increment = List.of(MutateInSpec.increment("n", 1));
    collection.mutateIn("level", increment, MutateInOptions.mutateInOptions().durability(level));
    assertEquals(4, collection.get("level").contentAsObject().getInt("n"));
    collection.remove("level", RemoveOptions.removeOptions().durability(level));
  }

  @Test
  void durabilityThatTheBucketCannotGiveIsImpossible() {
    server.call(
        "POST",
        "/buckets",
        JsonObject.create().put("name", "three").put("replicas", 3).put("vbuckets", 64));
    var three = cluster.bucket("three");
    three.waitUntilReady(Server.PATIENT);
    var majority = UpsertOptions.upsertOptions().durability(DurabilityLevel.MAJORITY);
    assertThrows(
        DurabilityImpossibleException.class,
        () -> three.defaultCollection().upsert("k", 1, majority));
  }

  @Test
  void aDurableWriteWhoseReplicaIsSilentIsAmbiguous() throws Exception {
    try (Server own = Server.start("--nodes", "2", "--replicas", "1", "--vbuckets", "64")) {
      Cluster connected = own.connect();
      var documents = connected.bucket(Server.BUCKET).defaultCollection();
      documents.upsert(key, 0);
      for (int node = 0; node < 2; node++) {
        own.call(
            "POST", "/holds", JsonObject.create().put("what", "replication").put("node", node));
      }
      var majority =
          UpsertOptions.upsertOptions()
              .durability(DurabilityLevel.MAJORITY)
              .timeout(Duration.ofMillis(1500));
      var error =
          assertThrows(CouchbaseException.class, () -> documents.upsert(key, 1, majority));
      assertTrue(
          error instanceof AmbiguousTimeoutException
              || error instanceof DurabilityAmbiguousException,
          error.toString());
      connected.disconnect();
    }
  }

  @Test
  void replicasHaveTheDocumentToo() throws Exception {
    try (Server own = Server.start("--nodes", "3", "--replicas", "1", "--vbuckets", "64")) {
      Cluster connected = own.connect();
      var documents = connected.bucket(Server.BUCKET).defaultCollection();
      documents.upsert(key, 7);
      assertEquals(2, documents.getAllReplicas(key).count());
      var entries = own.journal();
      int node = entries.get(entries.size() - 1).getInt("node");
      own.topology("crash", JsonObject.create().put("node", node));
      var patient = GetAnyReplicaOptions.getAnyReplicaOptions().timeout(Server.PATIENT);
      assertTrue(documents.getAnyReplica(key, patient).isReplica());
      connected.disconnect();
    }
  }
}
