package steadfast.interop;

import com.couchbase.client.core.env.SecurityConfig;
import com.couchbase.client.java.Cluster;
import com.couchbase.client.java.ClusterOptions;
import com.couchbase.client.java.json.JsonArray;
import com.couchbase.client.java.json.JsonObject;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A running cluster, seen from outside. */
final class Server implements AutoCloseable {
  static final String USER = "Administrator";
  static final String PASSWORD = "password";
  static final String BUCKET = "default";
  /** For operations that must end well while the cluster changes. */
  static final Duration PATIENT = Duration.ofSeconds(10);

  private final Process process;
  private final JsonObject facts;
  private final HttpClient http = HttpClient.newHttpClient();

  private Server(Process process, JsonObject facts) {
    this.process = process;
    this.facts = facts;
  }

  static Server start(String... arguments) throws IOException {
    String binary = System.getenv("STEADFAST");
    if (binary == null) {
      throw new IOException("set STEADFAST to the command, or use interop/run java");
    }
    List<String> command = new ArrayList<>(List.of(binary, "cluster", "--json"));
    command.addAll(List.of(arguments));
    Process process =
        new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    String line = new BufferedReader(new InputStreamReader(process.getInputStream())).readLine();
    if (line == null) {
      throw new IOException("the cluster did not start: " + command);
    }
    return new Server(process, JsonObject.fromJson(line));
  }

  @Override
  public void close() {
    process.destroy();
    try {
      if (!process.waitFor(10, TimeUnit.SECONDS)) {
        process.destroyForcibly();
        throw new IllegalStateException("the cluster did not stop");
      }
    } catch (InterruptedException interrupted) {
      throw new IllegalStateException(interrupted);
    }
  }

  /** Sends a request to the control endpoint; a response that is not a success is an error. */
  JsonObject call(String method, String path, JsonObject body) {
    HttpRequest request =
        HttpRequest.newBuilder(URI.create("http://" + facts.getString("control") + path))
            .header("Authorization", "Bearer " + facts.getString("control_token"))
            .header("Content-Type", "application/json")
            .timeout(Duration.ofMinutes(1))
            .method(
                method,
                body == null
                    ? HttpRequest.BodyPublishers.noBody()
                    : HttpRequest.BodyPublishers.ofString(body.toString()))
            .build();
    try {
      HttpResponse<String> response = http.send(request, HttpResponse.BodyHandlers.ofString());
      if (response.statusCode() / 100 != 2) {
        throw new IllegalStateException(method + " " + path + ": " + response.body());
      }
      return JsonObject.fromJson(response.body());
    } catch (IOException | InterruptedException error) {
      throw new IllegalStateException(method + " " + path, error);
    }
  }

  JsonObject topology(String action, JsonObject body) {
    return call("POST", "/topology/" + action, body);
  }

  /** The applied mutations, oldest first. */
  List<JsonObject> journal() {
    List<JsonObject> entries = new ArrayList<>();
    for (int since = 0; ; ) {
      JsonObject page = call("GET", "/journal?since=" + since + "&limit=50000", null);
      if (page.getInt("forgotten") > since) {
        throw new IllegalStateException("the journal has forgotten entries");
      }
      JsonArray found = page.getArray("entries");
      for (int at = 0; at < found.size(); at++) {
        entries.add(found.getObject(at));
      }
      since = page.getInt("next");
      if (found.isEmpty()) {
        return entries;
      }
    }
  }

  /** How often writes of a key were applied. */
  long applied(String key) {
    return journal().stream().filter(entry -> key.equals(entry.getString("key"))).count();
  }

  Cluster connect() {
    Cluster cluster = connect(USER, PASSWORD, false);
    cluster.bucket(BUCKET).waitUntilReady(PATIENT);
    return cluster;
  }

  Cluster connect(String user, String password, boolean tls) {
    ClusterOptions options = ClusterOptions.clusterOptions(user, password);
    if (tls) {
      Path authority = Path.of(facts.getString("authority"));
      options.environment(
          environment ->
              environment.securityConfig(
                  SecurityConfig.enableTls(true).trustCertificate(authority)));
    }
    return Cluster.connect(address(tls), options);
  }

  /** The connection string. */
  String address(boolean tls) {
    return facts.getString(tls ? "connect_tls" : "connect");
  }
}
