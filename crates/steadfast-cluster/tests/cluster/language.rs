//! SQL++ that small applications use, over real sockets.

use crate::support::http::{Call, HttpReply};
use crate::support::{BUCKET, Client, cluster};
use serde_json::{Value, json};
use steadfast_cluster::{Service, TestCluster};

async fn ask(cluster: &TestCluster, body: Value) -> HttpReply {
    let call = Call::new("POST", "/query/service").json(&body);
    call.send(cluster, Service::Query).await
}

async fn run(cluster: &TestCluster, statement: &str) -> HttpReply {
    ask(cluster, json!({"statement": statement})).await
}

async fn results(cluster: &TestCluster, statement: &str) -> Value {
    run(cluster, statement).await.results()
}

/// Four airlines in two countries, one of them without a fleet.
async fn with_airlines() -> TestCluster {
    let cluster = cluster(1, 0).await;
    for (key, value) in [
        ("a1", json!({"name": "Ada", "country": "FR", "fleet": 3})),
        ("a2", json!({"name": "bob", "country": "DE", "fleet": 10})),
        (
            "a3",
            json!({"name": "Cy_", "country": "DE", "fleet": 5, "tags": ["x", "y"]}),
        ),
        (
            "a4",
            json!({"name": "Dee", "country": "DE", "address": {"city": "Ulm"}}),
        ),
    ] {
        let mut client = Client::for_key(&cluster, key).await;
        client.set(key, &value.to_string()).await;
    }
    cluster
}

#[tokio::test]
async fn rows_are_ordered_limited_and_distinct() {
    let cluster = with_airlines().await;
    for (statement, wanted) in [
        (
            "SELECT RAW name FROM b ORDER BY fleet DESC",
            json!(["bob", "Cy_", "Ada", "Dee"]),
        ),
        (
            "SELECT RAW name FROM b ORDER BY fleet LIMIT 2",
            json!(["Dee", "Ada"]),
        ),
        (
            "SELECT RAW name FROM b ORDER BY country, name DESC LIMIT 2 OFFSET 1",
            json!(["Dee", "Cy_"]),
        ),
        (
            "SELECT UPPER(name) AS big FROM b ORDER BY big LIMIT 1",
            json!([{"big": "ADA"}]),
        ),
        (
            "SELECT DISTINCT country FROM b ORDER BY country",
            json!([{"country": "DE"}, {"country": "FR"}]),
        ),
        (
            "SELECT RAW name FROM b WHERE name LIKE '%e%' OR name LIKE 'Cy\\\\_'",
            json!(["Cy_", "Dee"]),
        ),
        (
            "SELECT RAW name FROM b WHERE country IN ['FR', 'IT']",
            json!(["Ada"]),
        ),
        (
            "SELECT RAW name FROM b WHERE fleet BETWEEN 4 AND 10 ORDER BY name",
            json!(["Cy_", "bob"]),
        ),
        (
            "SELECT RAW x.name FROM b AS x USE INDEX (i USING GSI) WHERE x.fleet % 2 = 0",
            json!(["bob"]),
        ),
    ] {
        assert_eq!(results(&cluster, statement).await, wanted, "{statement}");
    }
}

#[tokio::test]
async fn rows_are_grouped_and_aggregated() {
    let cluster = with_airlines().await;
    for (statement, wanted) in [
        (
            "SELECT country, COUNT(*) AS n, SUM(fleet) AS s, AVG(fleet) AS a FROM b \
             GROUP BY country ORDER BY country",
            json!([{"country": "DE", "n": 3, "s": 15, "a": 7.5}, {"country": "FR", "n": 1, "s": 3, "a": 3}]),
        ),
        (
            "SELECT RAW country FROM b GROUP BY country HAVING COUNT(*) > 1",
            json!(["DE"]),
        ),
        (
            "SELECT COUNT(fleet) AS c, COUNT(DISTINCT country) AS d, MIN(name) AS l, MAX(fleet) AS m FROM b",
            json!([{"c": 3, "d": 2, "l": "Ada", "m": 10}]),
        ),
        ("SELECT COUNT(*) AS n FROM b WHERE false", json!([{"n": 0}])),
        (
            "SELECT SUM(fleet) AS n FROM b WHERE false",
            json!([{"n": null}]),
        ),
        (
            "SELECT RAW ARRAY_AGG(name) FROM b WHERE country = 'FR'",
            json!([["Ada"]]),
        ),
        (
            "SELECT country FROM b GROUP BY country ORDER BY COUNT(*) DESC LIMIT 1",
            json!([{"country": "DE"}]),
        ),
    ] {
        assert_eq!(results(&cluster, statement).await, wanted, "{statement}");
    }
}

#[tokio::test]
async fn documents_are_updated_and_returned() {
    let cluster = with_airlines().await;
    let updated = run(
        &cluster,
        "UPDATE b SET fleet = IFMISSING(fleet, 0) + 1, address.city = 'Bonn', b.tags[1] = 'z' \
         UNSET name WHERE country = 'DE' RETURNING META().id, b.*",
    )
    .await;
    assert_eq!(updated.json()["metrics"]["mutationCount"], 3);
    assert_eq!(
        updated.results(),
        json!([
            {"id": "a2", "country": "DE", "fleet": 11},
            {"id": "a3", "country": "DE", "fleet": 6, "tags": ["x", "z"]},
            {"id": "a4", "country": "DE", "address": {"city": "Bonn"}, "fleet": 1},
        ])
    );
    let found = results(&cluster, "SELECT RAW fleet FROM b USE KEYS ['a1', 'a2']").await;
    assert_eq!(found, json!([3, 11]));
    let limited = run(&cluster, "UPDATE b SET x = 1 LIMIT 2").await.json();
    assert_eq!(limited["metrics"]["mutationCount"], 2);
    let deleted = results(&cluster, "DELETE FROM b LIMIT 1 RETURNING RAW META().id").await;
    assert_eq!(deleted, json!(["a1"]));
    let upserted = "UPSERT INTO b (KEY, VALUE) VALUES ('n', {'a': 1}) RETURNING a";
    assert_eq!(results(&cluster, upserted).await, json!([{"a": 1}]));
    let readonly = json!({"statement": "UPDATE b SET a = 1", "readonly": true});
    assert_eq!(ask(&cluster, readonly).await.code(), 1000);
}

#[tokio::test]
async fn indexes_are_created_listed_built_and_dropped() {
    let cluster = with_airlines().await;
    cluster.create_scope(BUCKET, "s").unwrap();
    cluster.create_collection(BUCKET, "s", "c", 0).unwrap();
    for statement in [
        "CREATE PRIMARY INDEX ON `b`",
        "CREATE INDEX `i` ON b(name, LOWER(country) DESC) WHERE fleet > 1 USING GSI",
        "CREATE INDEX i IF NOT EXISTS ON b(name)",
        "CREATE INDEX later ON default:b.s.c(a) WITH {\"defer_build\": true}",
        "DROP INDEX nope IF EXISTS ON b",
    ] {
        assert_eq!(results(&cluster, statement).await, json!([]), "{statement}");
    }
    let all = "SELECT idx.* FROM system:indexes AS idx WHERE (bucket_id IS MISSING AND \
               keyspace_id = $bucket) OR bucket_id = $bucket ORDER BY is_primary DESC, name ASC";
    let listed = ask(&cluster, json!({"statement": all, "$bucket": "b"}))
        .await
        .results();
    let names: Vec<&Value> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["name"])
        .collect();
    assert_eq!(names, ["#primary", "i", "later"]);
    assert_eq!(listed[1]["index_key"], json!(["`name`", "LOWER(country)"]));
    assert_eq!(listed[1]["condition"], "fleet > 1");
    assert_eq!(listed[2]["scope_id"], "s");
    let deferred = "SELECT RAW name FROM system:indexes WHERE state = 'deferred'";
    assert_eq!(results(&cluster, deferred).await, json!(["later"]));
    run(&cluster, "BUILD INDEX ON b.s.c(`later`)")
        .await
        .results();
    assert_eq!(results(&cluster, deferred).await, json!([]));
    for (statement, code) in [
        ("CREATE PRIMARY INDEX ON b", 4300),
        ("CREATE INDEX i ON b(x)", 4300),
        ("DROP INDEX nope ON b", 12_016),
        ("DROP INDEX b.nope", 12_016),
        ("BUILD INDEX ON b(nope)", 12_016),
        ("CREATE INDEX i ON nope(x)", 12_003),
    ] {
        assert_eq!(run(&cluster, statement).await.code(), code, "{statement}");
    }
    run(&cluster, "DROP PRIMARY INDEX ON b USING GSI")
        .await
        .results();
    assert_eq!(
        run(&cluster, "DROP PRIMARY INDEX ON b").await.code(),
        12_004
    );
    run(
        &cluster,
        "CREATE INDEX p ON b(x) PARTITION BY HASH(META().id, y)",
    )
    .await;
    let partition = "SELECT RAW `partition` FROM system:indexes WHERE name = 'p'";
    let shown = results(&cluster, partition).await;
    assert_eq!(shown, json!(["HASH(META().id, `y`)"]));
    run(&cluster, "DROP INDEX p ON b").await.results();
    let keyspaces = "SELECT RAW path FROM system:keyspaces WHERE `bucket` = 'b' AND name = 'c'";
    assert_eq!(results(&cluster, keyspaces).await, json!(["default:b.s.c"]));
    // With its collection, an index goes.
    cluster.drop_collection(BUCKET, "s", "c").unwrap();
    let left = results(&cluster, "SELECT RAW name FROM system:indexes").await;
    assert_eq!(left, json!(["i"]));
}

#[tokio::test]
async fn a_profile_is_in_the_response_if_it_is_wanted() {
    let cluster = cluster(1, 0).await;
    for (profile, wanted) in [("timings", true), ("phases", true), ("off", false)] {
        let body = json!({"statement": "SELECT 1", "profile": profile});
        let reply = ask(&cluster, body).await.json();
        assert_eq!(reply["profile"].is_object(), wanted, "{profile}");
    }
}
