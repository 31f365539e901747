package steadfast.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.couchbase.client.core.error.CouchbaseException;
import com.couchbase.client.core.error.UnambiguousTimeoutException;
import com.couchbase.client.core.retry.RetryReason;
import com.couchbase.client.java.Bucket;
import com.couchbase.client.java.Cluster;
import com.couchbase.client.java.ClusterOptions;
import com.couchbase.client.java.json.JsonArray;
import com.couchbase.client.java.json.JsonObject;
import com.couchbase.client.java.kv.GetOptions;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class BootstrapTest extends ClusterTest {
  private static final Duration SECOND = Duration.ofSeconds(1);

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void theRightCredentialsWork(boolean tls) {
    Cluster own = server.connect(Server.USER, Server.PASSWORD, tls);
    try {
      Bucket bucket = own.bucket(Server.BUCKET);
      bucket.waitUntilReady(Server.PATIENT);
      bucket.defaultCollection().upsert("login", tls);
      assertEquals(tls, bucket.defaultCollection().get("login").contentAs(Boolean.class));
      assertEquals(1, own.query("SELECT RAW 1").rowsAs(Integer.class).get(0));
    } finally {
      own.disconnect();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"Administrator", "stranger"})
  void wrongCredentialsDoNotOpenTheBucket(String user) {
    for (boolean tls : new boolean[] {false, true}) {
      Cluster own = server.connect(user, "wrong", tls);
      try {
        GetOptions options = GetOptions.getOptions().timeout(SECOND);
        var error =
            assertThrows(
                UnambiguousTimeoutException.class,
                () -> own.bucket(Server.BUCKET).defaultCollection().get("k", options));
        // The SDK reports the rejected login as an event of its own.
        assertTrue(
            error.retryReasons().contains(RetryReason.BUCKET_OPEN_IN_PROGRESS), error.toString());
      } finally {
        own.disconnect();
      }
    }
  }

  @Test
  void tlsWithoutTheAuthorityDoesNotWork() {
    Cluster own =
        Cluster.connect(server.address(true), ClusterOptions.clusterOptions(Server.USER, Server.PASSWORD));
    try {
      assertThrows(CouchbaseException.class, () -> own.waitUntilReady(SECOND));
    } finally {
      own.disconnect();
    }
  }

  @Test
  void aMissingBucketIsNotReady() {
    assertThrows(
        UnambiguousTimeoutException.class, () -> cluster.bucket("none").waitUntilReady(SECOND));
  }

  @Test
  void aUserWhoMayOnlyReadCannotWrite() {
    collection.upsert("read", 1);
    server.call(
        "POST",
        "/users",
        JsonObject.create()
            .put("name", "reader")
            .put("password", "r")
            .put("buckets", JsonArray.from(Server.BUCKET))
            .put("read_only", true));
    Cluster own = server.connect("reader", "r", false);
    try {
      own.bucket(Server.BUCKET).waitUntilReady(Server.PATIENT);
      var reading = own.bucket(Server.BUCKET).defaultCollection();
      assertEquals(1, reading.get("read").contentAs(Integer.class));
      assertThrows(CouchbaseException.class, () -> reading.upsert("read", 2));
      assertEquals(1, server.applied("read"));
    } finally {
      own.disconnect();
      server.call("DELETE", "/users/reader", null);
    }
  }

  @Test
  void aBucketThatComesLaterCanBeOpened() {
    server.call(
        "POST",
        "/buckets",
        JsonObject.create().put("name", "new").put("replicas", 0).put("vbuckets", 16));
    Bucket bucket = cluster.bucket("new");
    bucket.waitUntilReady(Server.PATIENT);
    bucket.defaultCollection().upsert("k", 1);
  }
}
