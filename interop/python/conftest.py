"""Starts `steadfast cluster` for the tests and talks to its control endpoint.

The binary is taken from STEADFAST, or from the debug build of this repository.
"""

import json
import os
import pathlib
import signal
import subprocess
import urllib.error
import urllib.request
from datetime import timedelta

import pytest
from couchbase.auth import PasswordAuthenticator
from couchbase.cluster import Cluster
from couchbase.options import ClusterOptions

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("STEADFAST", str(ROOT / "target" / "debug" / "steadfast"))
USER, PASSWORD, BUCKET = "Administrator", "password", "default"


class Server:
    """A running cluster, seen from outside."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [BINARY, "cluster", *arguments], stdout=subprocess.PIPE, text=True
        )
        facts = {}
        for line in self.process.stdout:
            if line.startswith("up;"):
                break
            name, _, value = line.partition("  ")
            facts[name.strip()] = value.split()[0]
        else:
            raise RuntimeError(f"the cluster did not start: {arguments}")
        self.connection_string = facts["connect"]
        self.tls_connection_string = facts.get("with TLS")
        self.authority = facts.get("authority")
        self.control = facts["control"]
        self.token = facts["token"]

    def call(self, method, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(
            self.control + path, data=data, method=method, headers=headers
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)

    def fault(self, **spec):
        return self.call("POST", "/faults", spec)["id"]

    def fired(self, fault):
        return self.call("GET", f"/faults/{fault}")["fired"]

    def topology(self, action, **body):
        return self.call("POST", f"/topology/{action}", body)

    def journal(self, since=0):
        """Every applied mutation from a sequence number on, and the number after the last."""
        entries = []
        while True:
            page = self.call("GET", f"/journal?since={since}&limit=50000")
            assert page["forgotten"] <= since, "the journal has forgotten some"
            entries += page["entries"]
            since = page["next"]
            if not page["entries"]:
                return entries, since

    def connect(self, user=USER, password=PASSWORD, tls=False):
        if tls:
            authenticator = PasswordAuthenticator(user, password, cert_path=self.authority)
        else:
            authenticator = PasswordAuthenticator(user, password)
        address = self.tls_connection_string if tls else self.connection_string
        cluster = Cluster(address, ClusterOptions(authenticator))
        cluster.wait_until_ready(timedelta(seconds=10))
        return cluster

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.authority:
            assert not os.path.exists(self.authority), "it removes what it made"


@pytest.fixture(scope="session")
def server():
    """One cluster for all tests that leave it as they found it."""
    running = Server("--nodes", "3", "--tls")
    yield running
    running.stop()


@pytest.fixture
def own_server():
    """A cluster for a test that changes its nodes."""
    running = Server("--nodes", "3", "--vbuckets", "64")
    yield running
    running.stop()


@pytest.fixture(scope="session")
def cluster(server):
    connected = server.connect()
    yield connected
    connected.close()


@pytest.fixture
def collection(server, cluster):
    yield cluster.bucket(BUCKET).default_collection()
    server.call("DELETE", "/faults")
    server.call("POST", f"/buckets/{BUCKET}/flush")
