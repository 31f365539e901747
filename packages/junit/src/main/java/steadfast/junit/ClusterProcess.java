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
import java.util.Collections;
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
    Process process = new ProcessBuilder(line).start();
    List<String> said = Collections.synchronizedList(new ArrayList<>());
    Thread listener = new Thread(() -> listen(process, said), "steadfast-messages");
    listener.setDaemon(true);
    listener.start();
    InputStreamReader printed =
        new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8);
    String first = new BufferedReader(printed).readLine();
    if (first == null) {
      throw new IOException("the cluster did not start: " + messageOf(listener, said));
    }
    return new ClusterProcess(process, JsonObject.fromJson(first));
  }

  /** Passes on what the program says, and keeps it for an exception. */
  private static void listen(Process process, List<String> said) {
    InputStreamReader messages =
        new InputStreamReader(process.getErrorStream(), StandardCharsets.UTF_8);
    new BufferedReader(messages)
        .lines()
        .forEach(
            line -> {
              System.err.println(line);
              if (said.size() == 100) {
                said.remove(0);
              }
              said.add(line);
            });
  }

  /** Returns what the program says about its failure: JSON on one line. */
  private static String messageOf(Thread listener, List<String> said) {
    try {
      listener.join();
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
    String last = said.isEmpty() ? "it printed nothing" : said.get(said.size() - 1);
    return last.startsWith("{") ? JsonObject.fromJson(last).getString("message") : last;
  }

  /** Starts a rebalance, and waits as long as documents move. */
  JsonObject move(String change, JsonObject pace) {
    boolean wait = !Boolean.FALSE.equals(pace.getBoolean("wait"));
    JsonObject started = call("POST", "/topology/" + change, pace.put("wait", false));
    long pause = pace.containsKey("pause_ms") ? pace.getLong("pause_ms") : 0;
    Duration patience = Duration.ofMinutes(1).plusMillis(pause);
    int moved = -1;
    for (long since = System.nanoTime(); wait; ) {
      JsonObject last = call("GET", "/topology/rebalance", null);
      if (!last.getLong("id").equals(started.getLong("rebalance"))
          || "done".equals(last.getString("state"))) {
        break;
      }
      if ("cancelled".equals(last.getString("state"))) {
        throw new IllegalStateException(
            "the rebalance was cancelled: another one continues from there");
      }
      if (last.getInt("moved") != moved) {
        moved = last.getInt("moved");
        since = System.nanoTime();
      }
      if (System.nanoTime() - since > patience.toNanos()) {
        String far = moved + " of " + last.getInt("total") + " vbuckets";
        throw new IllegalStateException(
            "the rebalance goes on, but nothing has moved for " + patience + ": " + far);
      }
      try {
        Thread.sleep(10);
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
        throw new IllegalStateException("interrupted; the rebalance goes on", interrupted);
      }
    }
    return started;
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
