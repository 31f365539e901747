// resilience4j around Java's HttpClient, for every exception and 5xx.

import io.github.resilience4j.core.IntervalFunction;
import io.github.resilience4j.retry.Retry;
import io.github.resilience4j.retry.RetryConfig;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;
import java.time.Duration;

class Resilience4j {
  public static void main(String[] arguments) throws Throwable {
    String method = System.getenv("AUDIT_METHOD");
    String key = System.getenv("AUDIT_KEY");
    var upload = Path.of(System.getenv("AUDIT_FILE"));
    var request =
        HttpRequest.newBuilder(URI.create(System.getenv("AUDIT_URL")))
            .version(HttpClient.Version.HTTP_1_1)
            .timeout(Duration.ofSeconds(2))
            .method(method, method.equals("GET") ? BodyPublishers.noBody() : BodyPublishers.ofFile(upload));
    if (!key.isEmpty()) {
      request.header("Idempotency-Key", key);
    }
    var config =
        RetryConfig.<HttpResponse<String>>custom()
            .maxAttempts(4)
            .intervalFunction(IntervalFunction.ofExponentialRandomBackoff(500, 2))
            .retryOnResult(response -> response.statusCode() >= 500)
            .build();
    var client = HttpClient.newHttpClient();
    var send =
        Retry.decorateCheckedSupplier(
            Retry.of("audit", config), () -> client.send(request.build(), BodyHandlers.ofString()));
    System.exit(send.get().statusCode() < 400 ? 0 : 1);
  }
}
