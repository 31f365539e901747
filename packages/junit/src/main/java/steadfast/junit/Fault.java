package steadfast.junit;

import com.couchbase.client.java.json.JsonObject;

/** A rule that hits requests, until it is closed. */
public final class Fault implements AutoCloseable {
  private final ClusterProcess cluster;
  private JsonObject last;
  private boolean removed;

  Fault(ClusterProcess cluster, JsonObject status) {
    this.cluster = cluster;
    this.last = status;
  }

  /** Returns how many requests it has hit. */
  public long fired() {
    if (!removed) {
      last = cluster.call("GET", path(), null);
    }
    return last.getLong("fired");
  }

  /** Removes the rule, and releases what it holds. Does nothing the second time. */
  @Override
  public void close() {
    if (!removed) {
      fired();
      cluster.call("DELETE", path(), null);
      removed = true;
    }
  }

  private String path() {
    return "/faults/" + last.getLong("id");
  }
}
