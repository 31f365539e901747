"""The SDK at work while nodes come and go, and while requests are broken."""

import threading
from datetime import timedelta

from couchbase.exceptions import CouchbaseException
from couchbase.options import GetOptions, UpsertOptions

from conftest import BUCKET


class Load:
    """Writes and reads from several threads; remembers what was acknowledged and what failed."""

    def __init__(self, collection, threads=4):
        self.collection = collection
        self.stopping = threading.Event()
        self.acknowledged = {}
        self.errors = []
        self.operations = 0
        self.threads = [threading.Thread(target=self.run, args=(n,)) for n in range(threads)]

    def run(self, number):
        timeout = timedelta(seconds=10)
        at = 0
        while not self.stopping.is_set():
            at += 1
            key, value = f"load:{number}:{at % 200}", {"at": at}
            try:
                self.collection.upsert(key, value, UpsertOptions(timeout=timeout))
                self.acknowledged[key] = value
                found = self.collection.get(key, GetOptions(timeout=timeout)).content_as[dict]
                if found != value:
                    self.errors.append(f"{key}: read {found}, wrote {value}")
                self.operations += 2
            except CouchbaseException as error:
                self.errors.append(repr(error))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def check(self):
        assert not self.errors, self.errors[:3]
        assert self.operations > 100
        for key, value in self.acknowledged.items():
            assert self.collection.get(key).content_as[dict] == value


def test_a_rebalance_in_and_out_under_load_gives_no_error(own_server):
    cluster = own_server.connect()
    with Load(cluster.bucket(BUCKET).default_collection()) as load:
        joined = own_server.topology("rebalance-in", vbuckets_per_step=1, pause_ms=20)
        own_server.topology("rebalance-out", node=0, vbuckets_per_step=1, pause_ms=20)
    load.check()
    nodes = own_server.call("GET", "/status")["nodes"]
    assert [node["node"] for node in nodes] == [1, 2, joined["node"]]
    cluster.close()


def test_a_failover_under_load_loses_nothing_acknowledged(own_server):
    cluster = own_server.connect()
    with Load(cluster.bucket(BUCKET).default_collection()) as load:
        own_server.topology("fail-over", node=2)
        own_server.topology("rebalance", vbuckets_per_step=4, pause_ms=10)
    # A write that was in flight when its connection was cut may be refused as ambiguous; the
    # real system gives that error too. Nothing else may fail.
    unexpected = [e for e in load.errors if "RequestCanceled" not in e and "Ambiguous" not in e]
    assert not unexpected, unexpected[:3]
    for key, value in load.acknowledged.items():
        found = load.collection.get(key).content_as[dict]
        assert found["at"] >= value["at"], (key, found, value)
    cluster.close()


def test_temporary_failures_are_retried_by_the_sdk(server, collection):
    fault = server.fault(opcode="SET", key="k", times=3, verdict="answer", status="ETMPFAIL")
    since = server.journal()["next"]
    collection.upsert("k", 1)
    assert server.fired(fault) == 3
    applied = [entry for entry in server.journal(since)["entries"] if entry["key"] == "k"]
    assert len(applied) == 1


def test_a_crashed_node_comes_back(own_server):
    cluster = own_server.connect()
    collection = cluster.bucket(BUCKET).default_collection()
    for at in range(50):
        collection.upsert(f"k{at}", at)
    own_server.topology("crash", node=1)
    own_server.topology("restart", node=1)
    for at in range(50):
        assert collection.get(f"k{at}", GetOptions(timeout=timedelta(seconds=10))).content_as[int] == at
    cluster.close()
