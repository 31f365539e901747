"""A driver for `steadfast audit couchbase`: the official SDK for Python."""

import json
import sys
from datetime import timedelta

import couchbase
import couchbase.subdocument as subdocument
from couchbase.auth import PasswordAuthenticator
from couchbase.cluster import Cluster
from couchbase.exceptions import AmbiguousTimeoutException, CouchbaseException, UnAmbiguousTimeoutException
from couchbase.options import (
    AppendOptions,
    ClusterOptions,
    ExistsOptions,
    GetOptions,
    IncrementOptions,
    InsertOptions,
    LookupInOptions,
    MutateInOptions,
    QueryOptions,
    RemoveOptions,
    ReplaceOptions,
    SignedInt64,
    TouchOptions,
    UpsertOptions,
)


class Driver:
    """Does what a command says."""

    cluster = None

    def connect(self, command, timeout):
        if self.cluster:
            self.cluster.close()
        login = PasswordAuthenticator(command["username"], command["password"])
        self.cluster = Cluster(command["connection_string"], ClusterOptions(login, bootstrap_timeout=timeout))
        self.cluster.wait_until_ready(timeout)
        bucket = self.cluster.bucket(command["bucket"])
        self.documents = bucket.default_collection()

    def get(self, command, timeout):
        self.documents.get(command["key"], GetOptions(timeout=timeout))

    def exists(self, command, timeout):
        self.documents.exists(command["key"], ExistsOptions(timeout=timeout))

    def upsert(self, command, timeout):
        self.documents.upsert(command["key"], command["value"], UpsertOptions(timeout=timeout))

    def insert(self, command, timeout):
        self.documents.insert(command["key"], command["value"], InsertOptions(timeout=timeout))

    def replace(self, command, timeout):
        self.documents.replace(command["key"], command["value"], ReplaceOptions(timeout=timeout))

    def remove(self, command, timeout):
        self.documents.remove(command["key"], RemoveOptions(timeout=timeout))

    def append(self, command, timeout):
        self.documents.binary().append(command["key"], command["text"], AppendOptions(timeout=timeout))

    def increment(self, command, timeout):
        # A negative initial value means none.
        options = IncrementOptions(timeout=timeout, initial=SignedInt64(-1))
        self.documents.binary().increment(command["key"], options)

    def touch(self, command, timeout):
        expiry = timedelta(seconds=command["expiry_seconds"])
        self.documents.touch(command["key"], expiry, TouchOptions(timeout=timeout))

    def lookup(self, command, timeout):
        specs = [subdocument.get(command["path"])]
        self.documents.lookup_in(command["key"], specs, LookupInOptions(timeout=timeout))

    def mutate(self, command, timeout):
        specs = [subdocument.upsert(command["path"], command["value"])]
        self.documents.mutate_in(command["key"], specs, MutateInOptions(timeout=timeout))

    def query(self, command, timeout):
        options = QueryOptions(timeout=timeout, read_only=command["readonly"])
        self.cluster.query(command["statement"], options).execute()


def answer(driver, command):
    operation = getattr(driver, command["do"], None)
    if operation is None:
        return {"unsupported": True}
    timeout = timedelta(milliseconds=command.get("timeout_ms", 0))
    try:
        operation(command, timeout)
    except CouchbaseException as error:
        said = {AmbiguousTimeoutException: True, UnAmbiguousTimeoutException: False}
        found = {"error": type(error).__name__}
        if type(error) in said:
            found["ambiguous"] = said[type(error)]
        return found
    return {"ok": True, "sdk": f"couchbase {couchbase.__version__} for Python"}


driver = Driver()
for line in sys.stdin:
    command = json.loads(line)
    print(json.dumps({"id": command["id"], **answer(driver, command)}), flush=True)
