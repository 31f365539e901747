"""A cluster as a child process, and its control endpoint."""

import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
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
            self._process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
            first = self._process.stdout.readline()
        if not first:
            status = self._process.wait()
            raise ControlError(f"the cluster did not start: status {status}, see its message")
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
        return self.call("POST", "/topology/rebalance-in", pace)["node"]

    def rebalance_out(self, node, **pace):
        """Moves all documents off a node and removes it."""
        self.call("POST", "/topology/rebalance-out", {"node": node, **pace})

    def rebalance(self, **pace):
        """Spreads documents evenly over the nodes as they are."""
        self.call("POST", "/topology/rebalance", pace)

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
