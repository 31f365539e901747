package steadfast.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.couchbase.client.core.error.CouchbaseException;
import com.couchbase.client.core.error.subdoc.PathExistsException;
import com.couchbase.client.core.error.subdoc.PathInvalidException;
import com.couchbase.client.core.error.subdoc.PathMismatchException;
import com.couchbase.client.core.error.subdoc.PathNotFoundException;
import com.couchbase.client.java.json.JsonArray;
import com.couchbase.client.java.json.JsonObject;
import com.couchbase.client.java.kv.LookupInSpec;
import com.couchbase.client.java.kv.MutateInMacro;
import com.couchbase.client.java.kv.MutateInOptions;
import com.couchbase.client.java.kv.MutateInSpec;
import com.couchbase.client.java.kv.StoreSemantics;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class SubdocumentsTest extends ClusterTest {
  @Test
  void pathsAreLookedUpAndChanged() {
    var inner = JsonObject.create().put("b", JsonArray.from(1, 2));
    collection.upsert(key, JsonObject.create().put("a", inner).put("n", 1));
    var found =
        collection.lookupIn(
            key,
            List.of(
                LookupInSpec.get("a.b[1]"),
                LookupInSpec.count("a.b"),
                LookupInSpec.exists("none"),
                LookupInSpec.get("none")));
    assertEquals(2, found.contentAs(0, Integer.class));
    assertEquals(2, found.contentAs(1, Integer.class));
    assertFalse(found.exists(2));
    assertThrows(PathNotFoundException.class, () -> found.contentAs(3, Integer.class));
    collection.mutateIn(
        key,
        List.of(
            MutateInSpec.upsert("c", true),
            MutateInSpec.arrayAppend("a.b", List.of(3)),
            MutateInSpec.increment("n", 4),
            MutateInSpec.remove("a.b[0]")));
    var expected =
        JsonObject.create()
            .put("a", JsonObject.create().put("b", JsonArray.from(2, 3)))
            .put("n", 5)
            .put("c", true);
    assertEquals(expected, collection.get(key).contentAsObject());
  }

  @Test
  void aMutationThatFailsChangesNothing() {
    collection.upsert(key, JsonObject.create().put("a", 1));
    Map<MutateInSpec, Class<? extends CouchbaseException>> refused =
        Map.of(
            MutateInSpec.replace("none", 1), PathNotFoundException.class,
            MutateInSpec.insert("a", 1), PathExistsException.class,
            MutateInSpec.arrayAppend("a", List.of(1)), PathMismatchException.class,
            MutateInSpec.upsert("a..b", 1), PathInvalidException.class);
    refused.forEach(
        (spec, expected) -> {
          var specs = List.of(MutateInSpec.upsert("b", 2), spec);
          assertThrows(expected, () -> collection.mutateIn(key, specs));
        });
    assertEquals(1, server.applied(key));
  }

  @Test
  void extendedAttributesAndMacros() {
    collection.mutateIn(
        key,
        List.of(
            MutateInSpec.upsert("note.by", "ada").xattr().createPath(),
            MutateInSpec.upsert("note.cas", MutateInMacro.CAS).xattr().createPath(),
            MutateInSpec.upsert("n", 1)),
        MutateInOptions.mutateInOptions().storeSemantics(StoreSemantics.UPSERT));
    var found =
        collection.lookupIn(
            key,
            List.of(
                LookupInSpec.get("note.by").xattr(), LookupInSpec.get("note.cas").xattr()));
    assertEquals("ada", found.contentAs(0, String.class));
    assertEquals("0x0000000000000000".length(), found.contentAs(1, String.class).length());
    assertEquals(JsonObject.create().put("n", 1), collection.get(key).contentAsObject());
  }
}
