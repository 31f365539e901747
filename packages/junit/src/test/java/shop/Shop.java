package shop;

import com.couchbase.client.core.error.CouchbaseException;
import com.couchbase.client.core.error.DocumentExistsException;
import com.couchbase.client.core.error.RequestCanceledException;
import com.couchbase.client.core.error.TimeoutException;
import com.couchbase.client.java.Collection;
import com.couchbase.client.java.json.JsonObject;
import com.couchbase.client.java.kv.GetOptions;
import java.time.Duration;

/** The application under test: a shop that stores orders. */
final class Shop {
  private Shop() {}

  /**
   * Stores an order once, also if an answer is lost.
   *
   * <p>An insert may fail after it was applied. It is safe to repeat: then the order exists.
   */
  static void placeOrder(Collection orders, String key, JsonObject order) {
    CouchbaseException last = null;
    for (int attempt = 0; attempt < 5; attempt++) {
      try {
        orders.insert(key, order);
        return;
      } catch (DocumentExistsException exists) {
        return;
      } catch (TimeoutException | RequestCanceledException error) {
        last = error;
      }
    }
    throw last;
  }

  /** Returns the status of an order, or "unknown" if the database is too slow. */
  static String statusOf(Collection orders, String key, Duration patience) {
    try {
      GetOptions options = GetOptions.getOptions().timeout(patience);
      return orders.get(key, options).contentAsObject().getString("status");
    } catch (TimeoutException error) {
      return "unknown";
    }
  }
}
