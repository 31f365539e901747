package steadfast.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.couchbase.client.core.diagnostics.PingState;
import com.couchbase.client.core.error.CouchbaseException;
import com.couchbase.client.core.error.DocumentNotFoundException;
import com.couchbase.client.core.error.ParsingFailureException;
import com.couchbase.client.core.service.ServiceType;
import com.couchbase.client.java.json.JsonArray;
import com.couchbase.client.java.json.JsonObject;
import com.couchbase.client.java.manager.search.SearchIndex;
import com.couchbase.client.java.query.QueryOptions;
import com.couchbase.client.java.search.SearchQuery;
import com.couchbase.client.java.transactions.TransactionQueryOptions;
import com.couchbase.client.java.transactions.error.TransactionFailedException;
import java.util.List;
import org.junit.jupiter.api.Test;

class ServicesTest extends ClusterTest {
  @Test
  void queriesReadAndWriteDocuments() {
    collection.upsert(key, JsonObject.create().put("n", 1));
    var byKey = QueryOptions.queryOptions().parameters(JsonArray.from(key));
    assertEquals(
        List.of(1),
        cluster
            .query("SELECT RAW d.n FROM `default` AS d USE KEYS $1", byKey)
            .rowsAs(Integer.class));
    cluster.query("UPDATE `default` AS d SET d.n = 2 WHERE META(d).id = $1", byKey);
    assertEquals(2, collection.get(key).contentAsObject().getInt("n"));
    var prepared =
        QueryOptions.queryOptions().adhoc(false).parameters(JsonObject.create().put("n", 5));
    for (int round = 0; round < 2; round++) {
      assertEquals(List.of(5), cluster.query("SELECT RAW $n", prepared).rowsAs(Integer.class));
    }
  }

  @Test
  void queryErrorsHaveTheirKind() {
    assertThrows(ParsingFailureException.class, () -> cluster.query("SELEC 1"));
    var error = assertThrows(CouchbaseException.class, () -> cluster.query("SELECT * FROM nope"));
    assertTrue(error.toString().contains("12003"), error.toString());
  }

  @Test
  void aScopeIsTheContextOfItsQueries() {
    collection.upsert(key, JsonObject.create().put("n", 3));
    var byKey = QueryOptions.queryOptions().parameters(JsonArray.from(key));
    var scope = cluster.bucket(Server.BUCKET).defaultScope();
    assertEquals(
        List.of(3),
        scope.query("SELECT RAW n FROM `_default` USE KEYS $1", byKey).rowsAs(Integer.class));
  }

  @Test
  void analyticsAndSearchAnswer() {
    assertEquals(List.of(1), cluster.analyticsQuery("SELECT VALUE 1").rowsAs(Integer.class));
    cluster.searchIndexes().upsertIndex(new SearchIndex("idx", Server.BUCKET));
    assertEquals(0, cluster.searchQuery("idx", SearchQuery.term("x")).rows().size());
  }

  @Test
  void everyServiceAnswersAPing() {
    var endpoints = cluster.bucket(Server.BUCKET).ping().endpoints();
    for (ServiceType service :
        List.of(ServiceType.KV, ServiceType.QUERY, ServiceType.SEARCH, ServiceType.ANALYTICS)) {
      assertEquals(3, endpoints.get(service).size(), service.toString());
      endpoints.get(service).forEach(found -> assertEquals(PingState.OK, found.state()));
    }
  }

  @Test
  void aTransactionIsAppliedWholeOrNotAtAll() {
    collection.upsert("tx:a", JsonObject.create().put("n", 1));
    assertThrows(TransactionFailedException.class, () -> transact(true));
    assertEquals(1, collection.get("tx:a").contentAsObject().getInt("n"));
    assertThrows(DocumentNotFoundException.class, () -> collection.get("tx:b"));
    server.call(
        "POST",
        "/faults",
        JsonObject.create()
            .put("opcode", "SUBDOC_MULTI_MUTATION")
            .put("times", 3)
            .put("effect", "answer")
            .put("status", "ETMPFAIL"));
    transact(false);
    for (String id : List.of("tx:a", "tx:b")) {
      assertEquals(2, collection.get(id).contentAsObject().getInt("n"));
    }
  }

  @Test
  void statementsTakePartInATransaction() {
    collection.upsert(key, JsonObject.create().put("n", 1));
    var byKey =
        TransactionQueryOptions.queryOptions().parameters(JsonArray.from(key, key + ":new"));
    cluster
        .transactions()
        .run(
            attempt -> {
              attempt.insert(collection, key + ":new", JsonObject.create().put("n", 5));
              // From here on, the SDK sends everything as statements.
              attempt.query("UPDATE `default` USE KEYS $1 SET n = n + 10", byKey);
              var found = attempt.query("SELECT RAW n FROM `default` USE KEYS [$1, $2]", byKey);
              assertEquals(List.of(11, 5), found.rowsAs(Integer.class));
              assertEquals(1, collection.get(key).contentAsObject().getInt("n"));
              var staged = attempt.get(collection, key + ":new");
              attempt.replace(staged, JsonObject.create().put("n", 6));
              assertThrows(
                  DocumentNotFoundException.class, () -> attempt.get(collection, key + ":none"));
            });
    assertEquals(11, collection.get(key).contentAsObject().getInt("n"));
    assertEquals(6, collection.get(key + ":new").contentAsObject().getInt("n"));
    assertThrows(
        TransactionFailedException.class,
        () ->
            cluster
                .transactions()
                .run(
                    attempt -> {
                      attempt.query("UPDATE `default` USE KEYS $1 SET n = 0", byKey);
                      throw new IllegalStateException("changed my mind");
                    }));
    assertEquals(11, collection.get(key).contentAsObject().getInt("n"));
  }

  private void transact(boolean fails) {
    cluster
        .transactions()
        .run(
            attempt -> {
              var found = attempt.get(collection, "tx:a");
              attempt.replace(found, JsonObject.create().put("n", 2));
              attempt.insert(collection, "tx:b", JsonObject.create().put("n", 2));
              if (fails) {
                throw new IllegalStateException("changed my mind");
              }
            });
  }
}
