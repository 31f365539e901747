package steadfast.interop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.couchbase.client.core.error.CasMismatchException;
import com.couchbase.client.core.error.DocumentExistsException;
import com.couchbase.client.core.error.DocumentNotFoundException;
import com.couchbase.client.core.error.TimeoutException;
import com.couchbase.client.core.error.ValueTooLargeException;
import com.couchbase.client.core.retry.RetryReason;
import com.couchbase.client.java.codec.RawBinaryTranscoder;
import com.couchbase.client.java.json.JsonObject;
import com.couchbase.client.java.kv.DecrementOptions;
import com.couchbase.client.java.kv.GetOptions;
import com.couchbase.client.java.kv.IncrementOptions;
import com.couchbase.client.java.kv.RemoveOptions;
import com.couchbase.client.java.kv.ReplaceOptions;
import com.couchbase.client.java.kv.ScanType;
import com.couchbase.client.java.kv.UpsertOptions;
import java.time.Duration;
import java.util.Random;
import org.junit.jupiter.api.Test;

class DocumentsTest extends ClusterTest {
  private static final Duration MINUTE = Duration.ofMinutes(1);

  @Test
  void insertReplaceAndRemoveSayWhetherTheDocumentIsThere() {
    assertThrows(DocumentNotFoundException.class, () -> collection.get(key));
    assertThrows(DocumentNotFoundException.class, () -> collection.replace(key, 1));
    assertThrows(DocumentNotFoundException.class, () -> collection.remove(key));
    collection.insert(key, 1);
    assertThrows(DocumentExistsException.class, () -> collection.insert(key, 2));
    assertTrue(collection.exists(key).exists());
    collection.remove(key);
    assertFalse(collection.exists(key).exists());
  }

  @Test
  void anOldCasIsRefused() {
    long first = collection.upsert(key, 1).cas();
    long second =
        collection.replace(key, 2, ReplaceOptions.replaceOptions().cas(first)).cas();
    assertThrows(
        CasMismatchException.class,
        () -> collection.replace(key, 3, ReplaceOptions.replaceOptions().cas(first)));
    assertThrows(
        CasMismatchException.class,
        () -> collection.remove(key, RemoveOptions.removeOptions().cas(first)));
    collection.remove(key, RemoveOptions.removeOptions().cas(second));
  }

  @Test
  void documentsExpireAndAreTouched() {
    collection.upsert(key, 1, UpsertOptions.upsertOptions().expiry(MINUTE));
    collection.upsert("touched", 1, UpsertOptions.upsertOptions().expiry(MINUTE));
    collection.touch("touched", Duration.ofHours(1));
    server.call("POST", "/clock", JsonObject.create().put("advance_ms", 61_000));
    assertThrows(DocumentNotFoundException.class, () -> collection.get(key));
    var found = collection.get("touched", GetOptions.getOptions().withExpiry(true));
    assertTrue(found.expiryTime().isPresent());
    collection.getAndTouch("touched", MINUTE);
    server.call("POST", "/clock", JsonObject.create().put("advance_ms", 61_000));
    assertThrows(DocumentNotFoundException.class, () -> collection.get("touched"));
  }

  @Test
  void aLockKeepsOthersOutUntilItEnds() {
    collection.upsert(key, 1);
    long cas = collection.getAndLock(key, Duration.ofSeconds(30)).cas();
    var brief = UpsertOptions.upsertOptions().timeout(Duration.ofMillis(300));
    var error = assertThrows(TimeoutException.class, () -> collection.upsert(key, 2, brief));
    assertTrue(error.retryReasons().contains(RetryReason.KV_LOCKED), error.toString());
    collection.unlock(key, cas);
    collection.upsert(key, 3);
    assertEquals(2, server.applied(key));
  }

  @Test
  void countersAppendAndPrepend() {
    var binary = collection.binary();
    var began = binary.increment(key, IncrementOptions.incrementOptions().initial(10));
    assertEquals(10, began.content());
    assertEquals(0, binary.decrement(key, DecrementOptions.decrementOptions().delta(20)).content());
    var raw = RawBinaryTranscoder.INSTANCE;
    collection.upsert(key, "b".getBytes(), UpsertOptions.upsertOptions().transcoder(raw));
    binary.append(key, "c".getBytes());
    binary.prepend(key, "a".getBytes());
    var found = collection.get(key, GetOptions.getOptions().transcoder(raw));
    assertEquals("abc", new String(found.contentAs(byte[].class)));
  }

  @Test
  void largeValuesSurviveAndTooLargeOnesAreRefused() {
    var raw = RawBinaryTranscoder.INSTANCE;
    var write = UpsertOptions.upsertOptions().transcoder(raw).timeout(Server.PATIENT);
    byte[] large = new byte[1 << 20];
    new Random(1).nextBytes(large);
    collection.upsert(key, large, write);
    var found = collection.get(key, GetOptions.getOptions().transcoder(raw).timeout(Server.PATIENT));
    assertArrayEquals(large, found.contentAs(byte[].class));
    byte[] huge = new byte[(20 << 20) + 1];
    new Random(2).nextBytes(huge);
    assertThrows(ValueTooLargeException.class, () -> collection.upsert(key, huge, write));
  }

  @Test
  void aRangeScanReturnsEveryDocument() {
    for (String id : new String[] {"scan:1", "scan:2", "scan:3", "other"}) {
      collection.upsert(id, 1);
    }
    assertEquals(3, collection.scan(ScanType.prefixScan("scan:")).count());
  }
}
