package steadfast.junit;

import com.couchbase.client.java.json.JsonObject;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/** A cluster as a child process, and its control endpoint. */
final class ClusterProcess {
  private static final HttpClient CLIENT =
      HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

  /** All that the cluster printed at its start. */
  final JsonObject facts;

  /** The number of writes at the start. */
  final long begin;

  private final Process process;

  private ClusterProcess(Process process, JsonObject facts) {
    this.process = process;
    this.facts = facts;
    this.begin = call("GET", "/status", null).getLong("applied_mutations");
  }

  /** Starts the program that STEADFAST names, or the one on the PATH. */
  static ClusterProcess start(String... options) throws IOException {
    List<String> line = new ArrayList<>();
    line.add(Optional.ofNullable(System.getenv("STEADFAST")).orElse("steadfast"));
    line.addAll(List.of("cluster", "--json"));
    line.addAll(List.of(options));
    Process process =
        new ProcessBuilder(line).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    InputStreamReader printed =
        new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8);
    String first = new BufferedReader(printed).readLine();
    if (first == null) {
      throw new IOException("the cluster did not start: see its message");
    }
    return new ClusterProcess(process, JsonObject.fromJson(first));
  }

  void stop() {
    process.destroy();
    try {
      if (!process.waitFor(10, TimeUnit.SECONDS)) {
        process.destroyForcibly().waitFor();
      }
    } catch (InterruptedException interrupted) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    }
  }

  /** Returns the response, or null if it is JSON's null. */
  JsonObject call(String method, String path, JsonObject body) {
    String sent = body == null ? "" : body.toString();
    HttpRequest request =
        HttpRequest.newBuilder(URI.create("http://" + facts.getString("control") + path))
            .header("Authorization", "Bearer " + facts.getString("control_token"))
            .header("Content-Type", "application/json")
            .timeout(Duration.ofMinutes(1))
            .method(method, BodyPublishers.ofString(sent))
            .build();
    HttpResponse<String> response;
    try {
      response = CLIENT.send(request, BodyHandlers.ofString());
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted", interrupted);
    }
    String text = response.body();
    if (response.statusCode() >= 400) {
      throw new IllegalArgumentException(JsonObject.fromJson(text).getString("error"));
    }
    return text.equals("null") ? null : JsonObject.fromJson(text);
  }
}
