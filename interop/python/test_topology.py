"""The SDK under load while the topology changes, checked against the journal."""

from datetime import timedelta

import pytest
from couchbase.exceptions import UnAmbiguousTimeoutException
from couchbase.options import GetOptions

from conftest import BUCKET
from load import Load


@pytest.fixture
def own_cluster(own_server):
    connected = own_server.connect()
    yield connected
    connected.close()


@pytest.fixture
def own_collection(own_cluster):
    return own_cluster.bucket(BUCKET).default_collection()


def test_a_rebalance_in_and_out_under_load_gives_no_error(own_server, own_collection):
    with Load(own_collection) as load:
        joined = own_server.topology("rebalance-in", vbuckets_per_step=1, pause_ms=20)
        load.progress()
        own_server.topology("rebalance-out", node=0, vbuckets_per_step=1, pause_ms=20)
        load.progress()
    assert load.errors == []
    load.check(own_server.journal()[0])
    nodes = own_server.call("GET", "/status")["nodes"]
    assert [node["node"] for node in nodes] == [1, 2, joined["node"]]


def test_a_failover_under_load_loses_and_doubles_nothing(own_server, own_collection):
    with Load(own_collection) as load:
        own_server.topology("fail-over", node=2)
        load.progress()
        own_server.topology("recover", node=2)
        own_server.topology("rebalance", vbuckets_per_step=4, pause_ms=10)
        load.progress()
    assert load.unexpected() == []
    load.check(own_server.journal()[0])


def test_a_crash_and_a_return_under_load_lose_and_double_nothing(own_server, own_collection):
    with Load(own_collection) as load:
        own_server.topology("crash", node=1)
        own_server.topology("restart", node=1)
        load.progress()
    assert load.unexpected() == []
    load.check(own_server.journal()[0])


def test_a_crash_that_ends_in_a_failover_and_a_new_node_is_survived(own_server, own_collection):
    with Load(own_collection) as load:
        own_server.topology("crash", node=1)
        own_server.topology("fail-over", node=1)
        # The SDK sets operations for a node that it cannot reach aside, and takes them up again
        # when it has bootstrapped another connection: a map without the node does not make it.
        own_server.topology("rebalance-in", vbuckets_per_step=4, pause_ms=10)
        load.progress()
    assert load.unexpected() == []
    load.check(own_server.journal()[0])


def test_a_node_that_is_down_costs_its_documents_an_unambiguous_timeout(own_server, own_collection):
    own_collection.upsert("k", 1)
    node = own_server.journal()[0][-1]["node"]
    own_server.topology("crash", node=node)
    with pytest.raises(UnAmbiguousTimeoutException):
        own_collection.get("k", GetOptions(timeout=timedelta(seconds=1)))
    own_server.topology("restart", node=node)
    found = own_collection.get("k", GetOptions(timeout=timedelta(seconds=10)))
    assert found.content_as[int] == 1
