"""A cluster as a child process, and its control endpoint."""

import collections
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import urllib.error
import urllib.request


class ControlError(Exception):
    """The cluster rejected a request; the message is the cluster's."""


class Cluster:
    """A running cluster. It stops at the end of a `with` block, and with this process.

    Options are those of `steadfast cluster`, with underscores: `nodes=3`, `tls=True`. A list
    repeats an option: `bucket=["a", "b"]`. `load` takes documents by key, or a path.
    """

    def __init__(self, **options):
        with tempfile.TemporaryDirectory() as folder:
            line = [find_binary(), "cluster", "--json", *to_arguments(options, folder)]
            self._process = subprocess.Popen(
                line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            self._said = collections.deque(maxlen=100)
            listener = threading.Thread(target=self._listen, daemon=True)
            listener.start()
            first = self._process.stdout.readline()
        if not first:
            listener.join()
            self._process.wait()
            raise ControlError(f"the cluster did not start: {message_of(self._said)}")
        #: All that the cluster printed at its start.
        self.facts = json.loads(first)
        self.connection_string = self.facts["connect"]
        self.tls_connection_string = self.facts["connect_tls"]
        #: The file of the authority's certificate, with `tls=True`.
        self.authority = self.facts["authority"]
        self.username = self.facts["username"]
        self.password = self.facts["password"]
        self.bucket = self.facts["buckets"][0]
        self._begin = self.call("GET", "/status")["applied_mutations"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Stops the cluster. Does nothing the second time."""
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _listen(self):
        """Passes on what the program says, and keeps the end of it for an exception."""
        for line in self._process.stderr:
            self._said.append(line)
            sys.stderr.write(line)

    def fault(self, effect, **condition):
        """Injects a fault until the end of a `with` block.

            with cluster.fault("cut-after-applying", opcode="ADD", key="k", times=1) as fault:
                ...
            assert fault.fired == 1
        """
        return Fault(self, {"effect": effect, **condition})

    def writes(self, key=None):
        """The writes that the cluster has applied since its start, oldest first."""
        entries, since = [], self._begin
        while True:
            page = self.call("GET", f"/journal?since={since}&limit=10000")
            if page["forgotten"] > self._begin:
                raise ControlError("the journal is full: start the cluster with a larger `journal`")
            entries += page["entries"]
            since = page["next"]
            if not page["entries"]:
                return [entry for entry in entries if key in (None, entry["key"])]

    def rebalance_in(self, **pace):
        """Adds a node and returns its number. `wait=False` returns while documents move."""
        return self._move("rebalance-in", pace)["node"]

    def rebalance_out(self, node, **pace):
        """Moves all documents off a node and removes it."""
        self._move("rebalance-out", pace, node=node)

    def rebalance(self, **pace):
        """Spreads documents evenly over the nodes as they are."""
        self._move("rebalance", pace)

    def _move(self, change, pace, **of):
        """Starts a rebalance, and waits as long as documents move."""
        started = self.call("POST", f"/topology/{change}", {**of, **pace, "wait": False})
        patience = 60 + pace.get("pause_ms", 0) / 1000
        moved, since = None, time.monotonic()
        while pace.get("wait", True):
            last = self.call("GET", "/topology/rebalance")
            if last["id"] != started["rebalance"] or last["state"] == "done":
                break
            if last["state"] == "cancelled":
                raise ControlError("the rebalance was cancelled: another one continues from there")
            if last["moved"] != moved:
                moved, since = last["moved"], time.monotonic()
            if time.monotonic() - since > patience:
                raise ControlError(
                    f"the rebalance goes on, but nothing has moved for {patience:.0f} s: {moved} of"
                    f" {last['total']} vbuckets; `wait=False` does not wait for it"
                )
            time.sleep(0.01)
        return started

    def is_rebalancing(self):
        """Whether documents are moving."""
        last = self.call("GET", "/topology/rebalance")
        return last is not None and last["state"] == "running"

    def crash(self, node):
        """Breaks the connections of a node. The cluster map still has it."""
        self.call("POST", "/topology/crash", {"node": node})

    def restart(self, node):
        """Starts a crashed node, on the same ports and with its documents."""
        self.call("POST", "/topology/restart", {"node": node})

    def fail_over(self, node):
        """Removes a node at once, and promotes replicas in its place."""
        self.call("POST", "/topology/fail-over", {"node": node})

    def recover(self, node):
        """Brings a failed-over node back, empty. A rebalance gives it documents."""
        self.call("POST", "/topology/recover", {"node": node})

    def advance_clock(self, seconds):
        """Lets time pass for the cluster: documents expire, locks end."""
        self.call("POST", "/clock", {"advance_ms": round(seconds * 1000)})

    def call(self, method, path, body=None):
        """Sends any request to the control endpoint. `GET /` lists what there is."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://{self.facts['control']}{path}",
            data=data,
            method=method,
            headers={
                "Authorization": f"Bearer {self.facts['control_token']}",
                "Content-Type": "application/json",
            },
        )
        try:
            # Not through a proxy of the environment.
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(request, timeout=60) as response:
                text = response.read().decode()
                is_json = response.headers.get_content_type() == "application/json"
        except urllib.error.HTTPError as error:
            with error:
                raise ControlError(json.load(error)["error"]) from None
        return json.loads(text) if is_json else text


class Fault:
    """A rule that hits requests, until it is removed."""

    def __init__(self, cluster, spec):
        self._cluster = cluster
        self._last = cluster.call("POST", "/faults", spec)
        self._removed = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    @property
    def fired(self):
        """How many requests it has hit."""
        if not self._removed:
            self._last = self._cluster.call("GET", f"/faults/{self._last['id']}")
        return self._last["fired"]

    def remove(self):
        """Removes the rule, and releases what it holds. Does nothing the second time."""
        if not self._removed:
            _ = self.fired
            self._cluster.call("DELETE", f"/faults/{self._last['id']}")
            self._removed = True


def message_of(lines):
    """What the program says about its failure: JSON on one line, with `--json`."""
    last = lines[-1].strip() if lines else "it printed nothing"
    try:
        return json.loads(last)["message"]
    except (ValueError, KeyError, TypeError):
        return last


def find_binary():
    """The program: STEADFAST, or the one that was installed with this package, or the PATH."""
    if chosen := os.environ.get("STEADFAST"):
        return chosen
    beside = os.path.join(sysconfig.get_path("scripts"), "steadfast")
    found = beside if os.access(beside, os.X_OK) else shutil.which("steadfast")
    if not found:
        raise ControlError("the program `steadfast` is missing: install it, or set STEADFAST")
    return found


def to_arguments(options, folder):
    """Options as the command line spells them."""
    arguments = []
    for name, value in options.items():
        if name == "load" and isinstance(value, dict):
            path = os.path.join(folder, "documents.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(value, file)
            value = path
        flag = "--" + name.replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                arguments.append(flag)
            elif one is not False and one is not None:
                arguments += [flag, str(one)]
    return arguments
