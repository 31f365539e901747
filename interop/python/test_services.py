"""Query, analytics, search and views, and the SDK's errors for them."""

import subprocess
import sys
import time
from datetime import timedelta

import couchbase.search as search
import pytest
from couchbase.auth import PasswordAuthenticator
from couchbase.cluster import Cluster
from couchbase.diagnostics import EndpointState, PingState, ServiceType
from couchbase.exceptions import CouchbaseException, ParsingFailedException, RequestCanceledException
from couchbase.management.search import SearchIndex
from couchbase.options import (
    AnalyticsOptions,
    ClusterOptions,
    QueryOptions,
    SearchOptions,
    ViewOptions,
)

from conftest import BUCKET, PASSWORD, USER


@pytest.fixture
def scripts(server):
    def add(**spec):
        return server.call("POST", "/scripts", spec)["id"]

    yield add
    server.call("DELETE", "/scripts")


def answered(server, script):
    return server.call("GET", f"/scripts/{script}")["answered"]


def rows(result):
    return list(result.rows())


def test_positional_and_named_parameters_come_back(cluster):
    options = QueryOptions(positional_parameters=["x", {"a": [1, None]}])
    assert rows(cluster.query("SELECT $1 AS one, $2 AS two", options)) == [{"one": "x", "two": {"a": [1, None]}}]
    options = QueryOptions(named_parameters={"name": "ü"}, client_context_id="c-1", metrics=True)
    result = cluster.query("SELECT $name AS n", options)
    assert rows(result) == [{"n": "ü"}]
    assert result.metadata().client_context_id() == "c-1"
    assert result.metadata().metrics().result_count().value == 1


def test_documents_are_queried_by_key(cluster, collection):
    collection.upsert("q1", {"n": 1})
    collection.upsert("q2", {"n": 2})
    statement = f"SELECT META(d).id, d.n FROM `{BUCKET}` AS d USE KEYS $1"
    found = rows(cluster.query(statement, QueryOptions(positional_parameters=[["q2", "none", "q1"]])))
    assert found == [{"id": "q2", "n": 2}, {"id": "q1", "n": 1}]


def test_a_scope_is_the_context_of_its_queries(cluster, collection):
    scope = cluster.bucket(BUCKET).default_scope()
    collection.upsert("s1", {"n": 1})
    assert rows(scope.query("SELECT RAW n FROM `_default` USE KEYS 's1'")) == [1]


def test_documents_that_queries_write_are_read_by_key(server, cluster, collection):
    _, since = server.journal()
    cluster.query(f"UPSERT INTO `{BUCKET}` VALUES ('w', {{'n': 7}})").execute()
    assert collection.get("w").content_as[dict] == {"n": 7}
    with pytest.raises(CouchbaseException):
        options = QueryOptions(read_only=True)
        cluster.query(f"UPSERT INTO `{BUCKET}` VALUES ('w', 8)", options).execute()
    entries, _ = server.journal(since)
    assert [entry["key"] for entry in entries] == ["w"]


def test_syntax_errors_and_unknown_keyspaces(cluster):
    with pytest.raises(ParsingFailedException):
        cluster.query("SELEC 1").execute()
    with pytest.raises(CouchbaseException) as refused:
        cluster.query("SELECT * FROM nope").execute()
    assert "12003" in str(refused.value)


# Prepares, waits for a line, and executes again. A process of its own, because this SDK
# (4.6.3) prepares again and sends again when its plan is lost, and then never completes the
# request: it has let go of the caller's handler by then.
PREPARED = """
import sys
from datetime import timedelta
from couchbase.auth import PasswordAuthenticator
from couchbase.cluster import Cluster
from couchbase.options import ClusterOptions, QueryOptions
cluster = Cluster(sys.argv[1], ClusterOptions(PasswordAuthenticator(sys.argv[2], sys.argv[3])))
def run(value):
    options = QueryOptions(adhoc=False, positional_parameters=[value])
    print(list(cluster.query("SELECT RAW $1 /* prepared */", options).rows()), flush=True)
run(1)
run(2)
sys.stdin.readline()
run(3)
"""


@pytest.mark.parametrize("loss", ["forgotten", "unrecognizable", "undecodable"])
def test_a_statement_whose_plan_is_lost_is_prepared_again(server, scripts, loss):
    def plans():
        return server.call("GET", "/plans")["count"]

    server.call("POST", "/plans/lose", {"as": "forgotten"})
    process = subprocess.Popen(
        [sys.executable, "-c", PREPARED, server.connection_string, USER, PASSWORD],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )
    try:
        assert process.stdout.readline() == "[1]\n"
        assert process.stdout.readline() == "[2]\n"
        assert server.call("POST", "/plans/lose", {"as": loss}) == {"lost": 1}
        # Counts what the SDK sends after the loss, without answering it.
        watch = scripts(service="query", matching="PREPARE SELECT RAW $1", skip=1000)
        process.stdin.write("\n")
        process.stdin.flush()
        deadline = time.monotonic() + 10
        while server.call("GET", f"/scripts/{watch}")["seen"] == 0:
            assert time.monotonic() < deadline, "it was not prepared again"
            time.sleep(0.02)
        assert plans() == 1
    finally:
        process.kill()
        process.wait()


def test_an_error_after_rows_reaches_the_reader(cluster, scripts):
    scripts(service="query", matching="broken", rows=[{"at": 0}, {"at": 1}], error={"code": 5000, "msg": "lost"})
    seen = []
    with pytest.raises(CouchbaseException):
        for row in cluster.query("SELECT 'broken'").rows():
            seen.append(row)


def test_analytics_echoes_and_fails_by_script(server, cluster, scripts):
    options = AnalyticsOptions(positional_parameters=[5], client_context_id="a-1")
    result = cluster.analytics_query("SELECT $1 AS x", options)
    assert rows(result) == [{"x": 5}]
    assert result.metadata().client_context_id() == "a-1"
    for code in (23000, 23003, 23007, 23001):
        script = scripts(
            service="analytics", times=1, status=500, rows=[], error={"code": code, "msg": "not now"}
        )
        with pytest.raises(CouchbaseException) as refused:
            rows(cluster.analytics_query("SELECT VALUE 1"))
        assert str(code) in str(refused.value)
        assert answered(server, script) == 1
    with pytest.raises(CouchbaseException):
        rows(cluster.analytics_query("SELECT * FROM nope"))


def test_search_finds_nothing_by_itself_and_what_a_script_says(server, cluster, scripts):
    query = search.TermQuery("x")
    with pytest.raises(CouchbaseException) as refused:
        rows(cluster.search_query("idx", query))
    assert "index not found" in str(refused.value)
    cluster.search_indexes().upsert_index(SearchIndex(name="idx", source_name=BUCKET))
    assert rows(cluster.search_query("idx", query)) == []
    hit = {"index": "idx_1", "id": "k", "score": 1.5, "fields": {}}
    scripts(service="search", matching="/api/index/idx/query", rows=[hit])
    result = cluster.search_query("idx", query, SearchOptions(limit=5))
    assert [(row.id, row.score) for row in result.rows()] == [("k", 1.5)]
    assert result.metadata().metrics().total_rows() == 1


def test_a_search_that_is_turned_away_says_so(server, cluster, scripts):
    script = scripts(service="search", times=1, status=429, body={"error": "busy", "status": "fail"})
    with pytest.raises(CouchbaseException):
        rows(cluster.search_query("idx", search.TermQuery("x")))
    assert answered(server, script) == 1


def test_views_are_missing_until_they_are_there(server, cluster, scripts):
    bucket = cluster.bucket(BUCKET)
    options = ViewOptions(timeout=timedelta(seconds=1))
    with pytest.raises(CouchbaseException):
        list(bucket.view_query("nope", "v", options).rows())
    script = scripts(
        service="views", matching="_design/d/_view/v", rows=[{"id": "k", "key": "a", "value": None}]
    )
    found = [(row.id, row.key) for row in bucket.view_query("d", "v").rows()]
    assert found == [("k", "a")]
    assert answered(server, script) == 1


def test_every_service_answers_a_ping(cluster):
    pinged = cluster.ping().endpoints
    services = ("Query", "Analytics", "Search", "View", "Management")
    for service in (ServiceType[name] for name in services):
        assert len(pinged[service]) == 3
        assert all(report.state == PingState.OK for report in pinged[service]), service
    bucket = cluster.bucket(BUCKET).ping().endpoints[ServiceType.KeyValue]
    assert bucket and all(report.state == PingState.OK for report in bucket)


def test_diagnostics_show_connections(cluster):
    endpoints = cluster.diagnostics().endpoints
    assert any(report.state == EndpointState.Connected for report in endpoints[ServiceType.KeyValue])


def test_a_fault_on_a_service_is_seen_and_goes_away(server, cluster):
    fault = server.fault(service="query", times=1, effect="cut-after-applying")
    try:
        with pytest.raises(RequestCanceledException):
            rows(cluster.query("SELECT RAW 1"))
        assert server.fired(fault) == 1
        assert rows(cluster.query("SELECT RAW 1")) == [1]
    finally:
        server.call("DELETE", "/faults")


def test_queries_work_over_tls(server):
    options = ClusterOptions(PasswordAuthenticator(USER, PASSWORD, cert_path=server.authority))
    cluster = Cluster(server.tls_connection_string, options)
    try:
        cluster.wait_until_ready(timedelta(seconds=10))
        assert rows(cluster.query("SELECT RAW 1")) == [1]
        assert len(cluster.buckets().get_all_buckets()) >= 1
    finally:
        cluster.close()
