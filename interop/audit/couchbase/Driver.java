// A driver for `steadfast audit couchbase`: the official SDK for Java.

import static com.couchbase.client.java.kv.AppendOptions.appendOptions;
import static com.couchbase.client.java.kv.ExistsOptions.existsOptions;
import static com.couchbase.client.java.kv.GetOptions.getOptions;
import static com.couchbase.client.java.kv.IncrementOptions.incrementOptions;
import static com.couchbase.client.java.kv.InsertOptions.insertOptions;
import static com.couchbase.client.java.kv.LookupInOptions.lookupInOptions;
import static com.couchbase.client.java.kv.MutateInOptions.mutateInOptions;
import static com.couchbase.client.java.kv.RemoveOptions.removeOptions;
import static com.couchbase.client.java.kv.ReplaceOptions.replaceOptions;
import static com.couchbase.client.java.kv.TouchOptions.touchOptions;
import static com.couchbase.client.java.kv.UpsertOptions.upsertOptions;
import static com.couchbase.client.java.query.QueryOptions.queryOptions;

import com.couchbase.client.core.error.AmbiguousTimeoutException;
import com.couchbase.client.core.error.CouchbaseException;
import com.couchbase.client.core.error.UnambiguousTimeoutException;
import com.couchbase.client.java.Cluster;
import com.couchbase.client.java.Collection;
import com.couchbase.client.java.json.JsonObject;
import com.couchbase.client.java.kv.LookupInSpec;
import com.couchbase.client.java.kv.MutateInSpec;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;

class Driver {
  private static Cluster cluster;
  private static Collection documents;

  public static void main(String[] arguments) throws Exception {
    var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      JsonObject command = JsonObject.fromJson(line);
      System.out.println(answer(command).put("id", command.getInt("id")));
    }
    System.exit(0);
  }

  private static JsonObject answer(JsonObject command) {
    JsonObject answer = JsonObject.create();
    try {
      if (!run(command)) {
        return answer.put("unsupported", true);
      }
      String version = Cluster.class.getPackage().getImplementationVersion();
      return answer.put("ok", true).put("sdk", "java-client " + version + " for Java");
    } catch (CouchbaseException error) {
      if (error instanceof AmbiguousTimeoutException || error instanceof UnambiguousTimeoutException) {
        answer.put("ambiguous", error instanceof AmbiguousTimeoutException);
      }
      return answer.put("error", error.getClass().getSimpleName());
    }
  }

  private static void connect(JsonObject command) {
    if (cluster != null) {
      cluster.disconnect();
    }
    cluster =
        Cluster.connect(
            command.getString("connection_string"),
            command.getString("username"),
            command.getString("password"));
    var bucket = cluster.bucket(command.getString("bucket"));
    bucket.waitUntilReady(Duration.ofMillis(command.getLong("timeout_ms")));
    documents = bucket.defaultCollection();
  }

  private static boolean run(JsonObject c) {
    if (c.getString("do").equals("connect")) {
      connect(c);
      return true;
    }
    var timeout = Duration.ofMillis(c.getLong("timeout_ms"));
    String key = c.getString("key");
    String path = c.getString("path");
    Object value = c.get("value");
    switch (c.getString("do")) {
      case "get" -> documents.get(key, getOptions().timeout(timeout));
      case "exists" -> documents.exists(key, existsOptions().timeout(timeout));
      case "upsert" -> documents.upsert(key, value, upsertOptions().timeout(timeout));
      case "insert" -> documents.insert(key, value, insertOptions().timeout(timeout));
      case "replace" -> documents.replace(key, value, replaceOptions().timeout(timeout));
      case "remove" -> documents.remove(key, removeOptions().timeout(timeout));
      case "append" -> {
        byte[] text = c.getString("text").getBytes(StandardCharsets.UTF_8);
        documents.binary().append(key, text, appendOptions().timeout(timeout));
      }
      case "increment" -> documents.binary().increment(key, incrementOptions().timeout(timeout));
      case "touch" -> {
        var expiry = Duration.ofSeconds(c.getLong("expiry_seconds"));
        documents.touch(key, expiry, touchOptions().timeout(timeout));
      }
      case "lookup" ->
          documents.lookupIn(key, List.of(LookupInSpec.get(path)), lookupInOptions().timeout(timeout));
      case "mutate" -> {
        var specs = List.<MutateInSpec>of(MutateInSpec.upsert(path, value));
        documents.mutateIn(key, specs, mutateInOptions().timeout(timeout));
      }
      case "query" -> {
        var options = queryOptions().timeout(timeout).readonly(c.getBoolean("readonly"));
        cluster.query(c.getString("statement"), options);
      }
      default -> {
        return false;
      }
    }
    return true;
  }
}
