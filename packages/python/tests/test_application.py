from datetime import timedelta

import pytest
from couchbase.auth import PasswordAuthenticator
from couchbase.cluster import Cluster
from couchbase.exceptions import CouchbaseException
from couchbase.options import ClusterOptions

from shop import place_order, status_of

pytestmark = pytest.mark.couchbase_cluster(nodes=3, vbuckets=64)
ORDER = {"status": "paid"}


@pytest.fixture
def orders(couchbase_cluster):
    login = PasswordAuthenticator(couchbase_cluster.username, couchbase_cluster.password)
    connected = Cluster(couchbase_cluster.connection_string, ClusterOptions(login))
    connected.wait_until_ready(timedelta(minutes=1))
    yield connected.bucket(couchbase_cluster.bucket).default_collection()
    connected.close()


def test_a_rebalance_loses_no_order(couchbase_cluster, orders):
    couchbase_cluster.rebalance_in(wait=False, vbuckets_per_step=1, pause_ms=20)
    placed = 0
    while couchbase_cluster.is_rebalancing():
        place_order(orders, f"order:{placed}", ORDER)
        placed += 1
    written = [write["key"] for write in couchbase_cluster.writes()]
    assert placed > 0
    assert sorted(written) == sorted(f"order:{number}" for number in range(placed))


def test_orders_survive_a_failover(couchbase_cluster, orders):
    for number in range(50):
        place_order(orders, f"before:{number}", ORDER)
    couchbase_cluster.fail_over(1)
    for number in range(50):
        place_order(orders, f"after:{number}", ORDER)
        assert status_of(orders, f"before:{number}", timedelta(minutes=1)) == "paid"


def test_an_order_is_stored_once_if_the_answer_is_lost(couchbase_cluster, orders):
    with couchbase_cluster.fault("cut-after-applying", opcode="ADD", key="o:1", times=1) as lost:
        place_order(orders, "o:1", ORDER)
    assert lost.fired == 1
    assert len(couchbase_cluster.writes("o:1")) == 1


def test_a_busy_server_is_asked_again(couchbase_cluster, orders):
    with couchbase_cluster.fault("answer", status="ETMPFAIL", opcode="ADD", times=2) as busy:
        place_order(orders, "o:2", ORDER)
    assert busy.fired == 2
    assert len(couchbase_cluster.writes("o:2")) == 1


def test_an_order_that_cannot_be_stored_is_reported(couchbase_cluster, orders):
    with couchbase_cluster.fault("cut-before-applying", opcode="ADD", key="o:4"):
        with pytest.raises(CouchbaseException):
            place_order(orders, "o:4", ORDER)
    assert couchbase_cluster.writes("o:4") == []


def test_a_slow_server_does_not_block_the_page(couchbase_cluster, orders):
    place_order(orders, "o:3", ORDER)
    with couchbase_cluster.fault("hold", opcode="GET", key="o:3"):
        assert status_of(orders, "o:3", timedelta(milliseconds=200)) == "unknown"
    assert status_of(orders, "o:3", timedelta(minutes=1)) == "paid"
