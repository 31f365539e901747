package steadfast.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.couchbase.client.core.error.CollectionExistsException;
import com.couchbase.client.core.error.DocumentNotFoundException;
import com.couchbase.client.core.error.ScopeExistsException;
import com.couchbase.client.core.error.TimeoutException;
import com.couchbase.client.core.retry.RetryReason;
import com.couchbase.client.java.json.JsonObject;
import com.couchbase.client.java.kv.GetOptions;
import java.time.Duration;
import org.junit.jupiter.api.Test;

class CollectionsTest extends ClusterTest {
  private static final String SCOPES = "/buckets/default/scopes";

  @Test
  void theSameKeyInTwoCollectionsIsTwoDocuments() {
    var named = JsonObject.create().put("name", "c");
    server.call("POST", SCOPES, JsonObject.create().put("name", "s"));
    server.call("POST", SCOPES + "/s/collections", named);
    var inside = cluster.bucket(Server.BUCKET).scope("s").collection("c");
    inside.upsert(key, "inside");
    collection.upsert(key, "outside");
    assertEquals("inside", inside.get(key).contentAs(String.class));
    // A collection that is dropped and made again is another one.
    server.call("DELETE", SCOPES + "/s/collections/c", null);
    server.call("POST", SCOPES + "/s/collections", named);
    var patient = GetOptions.getOptions().timeout(Server.PATIENT);
    assertThrows(DocumentNotFoundException.class, () -> inside.get(key, patient));
  }

  @Test
  void anUnknownCollectionIsLookedForUntilTheTimeIsUp() {
    var none = cluster.bucket(Server.BUCKET).collection("none");
    var brief = GetOptions.getOptions().timeout(Duration.ofMillis(500));
    var error = assertThrows(TimeoutException.class, () -> none.get(key, brief));
    assertTrue(
        error.retryReasons().contains(RetryReason.COLLECTION_MAP_REFRESH_IN_PROGRESS)
            || error.retryReasons().contains(RetryReason.COLLECTION_NOT_FOUND),
        error.toString());
  }

  @Test
  void collectionsAreManaged() {
    var manager = cluster.bucket(Server.BUCKET).collections();
    manager.createScope("managed");
    assertThrows(ScopeExistsException.class, () -> manager.createScope("managed"));
    manager.createCollection("managed", "c");
    assertThrows(CollectionExistsException.class, () -> manager.createCollection("managed", "c"));
    assertTrue(
        manager.getAllScopes().stream()
            .anyMatch(scope -> scope.name().equals("managed") && scope.collections().size() == 1));
    manager.dropScope("managed");
  }
}
