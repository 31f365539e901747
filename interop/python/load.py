"""A workload during topology changes, checked against the journal."""

import threading
import time
from collections import Counter, defaultdict
from datetime import timedelta

from couchbase.exceptions import (
    AmbiguousTimeoutException,
    CouchbaseException,
    RequestCanceledException,
)
from couchbase.options import DeltaValue, GetOptions, IncrementOptions, SignedInt64, UpsertOptions

TIMEOUT = timedelta(seconds=10)


class Load:
    """Threads that upsert and read back their own keys and count on their own counters.

    Every write is remembered with the CAS it was acknowledged with, so that the journal
    can be asked afterwards: each acknowledged write was applied once, and nothing else was
    applied but what ended in an error.
    """

    def __init__(self, collection, threads=4):
        self.collection = collection
        self.stopping = threading.Event()
        self.operations = [0] * threads
        self.errors = []
        self.last = {}
        self.acknowledged = defaultdict(list)
        self.unsure = Counter()
        self.threads = [threading.Thread(target=self.run, args=(n,)) for n in range(threads)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        self.progress()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def run(self, number):
        binary, counter = self.collection.binary(), f"load:{number}:counter"
        counting = IncrementOptions(delta=DeltaValue(1), initial=SignedInt64(1), timeout=TIMEOUT)
        at = 0
        while not self.stopping.is_set():
            at += 1
            key, value = f"load:{number}:{at % 100}", {"at": at}
            upsert = UpsertOptions(timeout=TIMEOUT)
            if self.write(key, lambda: self.collection.upsert(key, value, upsert)):
                self.last[key] = at
                self.read_back(key, value)
            self.write(counter, lambda: binary.increment(counter, counting))
            self.operations[number] += 3

    def write(self, key, operation):
        try:
            self.acknowledged[key].append(operation().cas)
            return True
        except CouchbaseException as error:
            self.unsure[key] += 1
            self.errors.append(error)
            return False

    def read_back(self, key, value):
        try:
            found = self.collection.get(key, GetOptions(timeout=TIMEOUT)).content_as[dict]
            if found != value:
                self.errors.append(f"{key}: read {found}, wrote {value}")
        except CouchbaseException as error:
            self.errors.append(error)

    def progress(self, operations=200):
        """Waits until so many operations more are done."""
        goal, deadline = sum(self.operations) + operations, time.monotonic() + 30
        while sum(self.operations) < goal:
            assert time.monotonic() < deadline, f"no progress: {self.errors[:1]}"
            self.stopping.wait(0.005)

    def unexpected(self):
        """Errors that the real system would not give.

        A write that was in flight when its node went may have been applied; the SDK does not
        send it again, and says so.
        """
        ambiguous = (RequestCanceledException, AmbiguousTimeoutException)
        return [error for error in self.errors if not isinstance(error, ambiguous)]

    def check(self, journal):
        """Nothing acknowledged is lost, and nothing was applied twice."""
        applied = defaultdict(list)
        for entry in journal:
            applied[entry["key"]].append(int(entry["cas"], 16))
        for key, acknowledged in self.acknowledged.items():
            there = set(applied[key])
            assert len(there) == len(applied[key]), f"{key}: a CAS was given twice"
            assert there.issuperset(acknowledged), f"{key}: acknowledged and not applied"
            most = len(acknowledged) + self.unsure[key]
            assert len(there) <= most, f"{key}: {len(there)} applied, at most {most} expected"
        for number in range(len(self.threads)):
            self.check_counter(f"load:{number}:counter")
        for key, at in self.last.items():
            found = self.get(key).content_as[dict]["at"]
            # Only a write that nobody knew the end of can have come after the last one.
            assert found >= at if self.unsure[key] else found == at, (key, found, at)

    def check_counter(self, key):
        least = len(self.acknowledged[key])
        count = self.get(key).content_as[int]
        assert least <= count <= least + self.unsure[key], (key, count, least, self.unsure[key])

    def get(self, key):
        return self.collection.get(key, GetOptions(timeout=TIMEOUT))
