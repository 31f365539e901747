"""The package itself: starting, options, faults, and the end."""

import os
import signal
import subprocess
import sys
from datetime import timedelta

import pytest
from couchbase.auth import PasswordAuthenticator
from couchbase.cluster import Cluster as Connection
from couchbase.exceptions import DocumentNotFoundException
from couchbase.options import ClusterOptions

from steadfast_cluster import Cluster, ControlError
from steadfast_cluster.cluster import find_binary


def connect(cluster, tls=False):
    login = PasswordAuthenticator(
        cluster.username, cluster.password, cert_path=cluster.authority if tls else None
    )
    address = cluster.tls_connection_string if tls else cluster.connection_string
    connection = Connection(address, ClusterOptions(login))
    connection.wait_until_ready(timedelta(minutes=1))
    return connection


def test_options_documents_and_tls():
    options = {"bucket": ["travel", "other"], "collection": "inventory.airline", "tls": True}
    with Cluster(**options, load={"k": {"a": 1}}, user="app:secret") as cluster:
        assert (cluster.username, cluster.bucket) == ("app", "travel")
        assert os.path.exists(cluster.authority)
        connection = connect(cluster, tls=True)
        travel = connection.bucket("travel")
        assert travel.default_collection().get("k").content_as[dict] == {"a": 1}
        airline = travel.scope("inventory").collection("airline")
        airline.upsert("a", 1)
        # Documents from the start are not writes of the application.
        assert [write["key"] for write in cluster.writes()] == ["a"]
        connection.close()
    assert not os.path.exists(cluster.authority)


@pytest.mark.couchbase_cluster(nodes=2, bucket="travel")
class TestMarkers:
    @pytest.mark.couchbase_cluster(nodes=1)
    def test_the_nearest_marker_wins(self, couchbase_cluster):
        assert couchbase_cluster.bucket == "travel"
        assert len(couchbase_cluster.call("GET", "/status")["nodes"]) == 1


def test_a_failed_start_says_why():
    with pytest.raises(ControlError, match="nodes"):
        Cluster(nodes=0)


def test_a_rebalance_is_waited_for(couchbase_cluster):
    node = couchbase_cluster.rebalance_in(vbuckets_per_step=64, pause_ms=1)
    assert not couchbase_cluster.is_rebalancing()
    couchbase_cluster.rebalance_out(node)


def test_a_status_is_text_or_a_number_and_a_typo_gets_a_suggestion(couchbase_cluster):
    for status in (503, "503"):
        couchbase_cluster.fault("answer", service="query", status=status).remove()
    couchbase_cluster.fault("hold", opcode="INSERT").remove()
    with pytest.raises(ControlError, match="did you mean cut-after-applying"):
        couchbase_cluster.fault("cut-after-appling")


def test_faults_count_and_end_with_their_block(couchbase_cluster):
    connection = connect(couchbase_cluster)
    collection = connection.bucket(couchbase_cluster.bucket).default_collection()
    with couchbase_cluster.fault("answer", status="KEY_ENOENT", opcode="GET", key="k") as missing:
        with pytest.raises(DocumentNotFoundException):
            collection.get("k")
        assert missing.fired == 1
    collection.upsert("k", 1)
    assert collection.get("k").content_as[int] == 1
    assert missing.fired == 1
    assert couchbase_cluster.call("GET", "/faults") == []
    connection.close()


@pytest.mark.couchbase_cluster(vbuckets=64)
def test_nodes_join_crash_return_and_leave(couchbase_cluster):
    def states():
        nodes = couchbase_cluster.call("GET", "/status")["nodes"]
        return [(node["up"], node["membership"]) for node in nodes]

    assert couchbase_cluster.rebalance_in(pause_ms=0) == 1
    couchbase_cluster.crash(1)
    assert states()[1][0] is False
    couchbase_cluster.restart(1)
    assert states()[1][0] is True
    couchbase_cluster.fail_over(1)
    couchbase_cluster.recover(1)
    couchbase_cluster.rebalance(pause_ms=0)
    couchbase_cluster.rebalance_out(0, pause_ms=0)
    assert not couchbase_cluster.is_rebalancing()
    couchbase_cluster.advance_clock(3600)


def test_errors_are_the_clusters_sentences(couchbase_cluster):
    with pytest.raises(ControlError, match="there is no node 9"):
        couchbase_cluster.crash(9)
    with pytest.raises(ControlError, match="is not an effect"):
        couchbase_cluster.fault("explode")
    with pytest.raises(ControlError, match="did not start"):
        Cluster(nodes=0)
    assert "GET    /status" in couchbase_cluster.call("GET", "/")


def test_the_cluster_ends_with_its_process():
    script = "import steadfast_cluster, time; c = steadfast_cluster.Cluster(); print(c._process.pid, flush=True); time.sleep(600)"
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    # The child has inherited the pipe: it ends when the child has.
    os.kill(child, 0)
    parent.stdout.read()
    parent.stdout.close()


def test_the_binary_is_the_one_of_this_package(monkeypatch):
    monkeypatch.delenv("STEADFAST", raising=False)
    if "STEADFAST_INSTALLED" not in os.environ:
        pytest.skip("only where the wheel is installed")
    assert os.path.dirname(find_binary()) == os.path.dirname(sys.executable)
