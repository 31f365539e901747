"""Compares the Java SDK's retries with ours, on the same faults.

    interop/faults/compare.py RECORD [--check]

RECORD is what FaultsTest of `interop/java` has written. This script runs the same cases with the
commands of `steadfast`, and writes docs/beside-the-java-sdk.md. A case that differs needs a sentence
in cases.json (`difference`), and a sentence needs a difference. With --check the page is not written,
and must be as it would be written.

Attempts are counted by the cluster.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "beside-the-java-sdk.md"
BINARY = os.environ["STEADFAST"]
# Java's names for reasons of RFC 0049.
RFC_NAMES = {
    "CHANNEL_CLOSED_WHILE_IN_FLIGHT": "SOCKET_CLOSED_WHILE_IN_FLIGHT",
    "ENDPOINT_NOT_AVAILABLE": "SOCKET_NOT_AVAILABLE",
    "KV_ERROR_MAP_INDICATED": "KV_ERROR_MAP_RETRY_INDICATED",
}
# Reasons for waiting until a connection is there: they depend on timing alone.
WAITING = {"SOCKET_NOT_AVAILABLE", "NODE_NOT_AVAILABLE"}
# Our client names these for a last attempt that RFC 0049 has no reason for.
OURS = {"TIMEOUT", "UNKNOWN"}
OPCODES = {"get": "GET", "upsert": "SET"}
HEAD = """# Beside the Java SDK

The Java SDK is the reference implementation of RFC 0049. `interop/run java` runs it and the commands of \
`steadfast` against the cluster, with the same faults, and writes this page. Attempts are those that the \
cluster received. *Reasons* are those of the retries, and of the retry that was refused. The Java SDK's \
names for reasons are replaced by those of the RFC. Two kinds of reasons are left out: those for waiting \
until a connection is there, because they depend on timing, and `TIMEOUT` and `UNKNOWN`, which our client \
gives to a last attempt that the RFC has no reason for.

The server's error map defines 0x7ff1 and 0x7ff2 with the attributes *retry-now* and *retry-later*; the \
*unknown status* is not in the map.

| operation | fault | Java SDK {java} | Steadfast | difference |
|---|---|---|---|---|
"""


class Cluster:
    """A running cluster."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [BINARY, "cluster", "--json", *arguments], stdout=subprocess.PIPE, text=True
        )
        self.facts = json.loads(self.process.stdout.readline())

    def call(self, method, path, body=None):
        request = urllib.request.Request(
            f"http://{self.facts['control']}{path}",
            data=json.dumps(body).encode() if body is not None else None,
            method=method,
            headers={
                "Authorization": f"Bearer {self.facts['control_token']}",
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def ours(cluster, case, key):
    """Runs a case with the command, and returns what happened."""
    address, operation = cluster.facts["connect"], case["operation"]
    environment = {
        **os.environ,
        "STEADFAST_USER": cluster.facts["username"],
        "STEADFAST_PASSWORD": cluster.facts["password"],
        "RUST_LOG": "steadfast=debug",
        "NO_COLOR": "1",
    }
    command = {
        "get": ["get", f"{address}/default", key],
        "upsert": ["upsert", f"{address}/default", key, "1"],
        "query": ["query", address, "SELECT RAW 1"],
        "query, read-only": ["query", address, "SELECT RAW 1", "--readonly"],
    }[operation]
    command = [BINARY, *command, "--json", "--timeout"]
    if operation == "get":
        subprocess.run(
            [BINARY, "upsert", f"{address}/default", key, "1"],
            env=environment, check=True, capture_output=True,
        )
    rules, rule = ("/scripts", case["script"]) if "script" in case else ("/faults", case["fault"])
    if operation in OPCODES:
        rule = {**rule, "opcode": OPCODES[operation], "key": key}
    path = f"{rules}/{cluster.call('POST', rules, rule)['id']}"
    run = subprocess.run(
        [*command, f"{case['timeout_ms']}ms"], env=environment, capture_output=True, text=True
    )
    attempts = cluster.call("GET", path)["seen"]
    cluster.call("DELETE", path)
    name = operation.split(",")[0]
    reasons = re.findall(rf'operation="{name}" attempt=\d+ reason="(\w+)"', run.stderr)
    outcome = "success"
    if run.returncode != 0:
        error = json.loads(run.stderr.splitlines()[-1])
        outcome = error["error"] + (", ambiguous" if error["ambiguous"] else "")
    return {"outcome": outcome, "attempts": attempts, "reasons": list(dict.fromkeys(reasons))}


def normalised(result):
    reasons = [RFC_NAMES.get(reason, reason) for reason in result["reasons"]]
    return {**result, "reasons": [reason for reason in reasons if reason not in WAITING | OURS]}


def differs(java, steadfast, case):
    endless = "times" not in case.get("fault", case.get("script"))
    attempts = [min(result["attempts"], 2) if endless else result["attempts"] for result in (java, steadfast)]
    return (
        attempts[0] != attempts[1]
        or words(java) != words(steadfast).removesuffix(", ambiguous")
        or set(java["reasons"]) != set(steadfast["reasons"])
    )


def words(result):
    """Returns the outcome in words."""
    outcome = re.sub(r"Exception$", "", result["outcome"])
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", outcome).lower()


def cell(result, case):
    endless = "times" not in case.get("fault", case.get("script"))
    attempts = result["attempts"]
    if endless and attempts > 1:
        count = "attempts until the timeout"
    else:
        count = f"{attempts} attempt{'s' if attempts != 1 else ''}"
    reasons = "".join(f", `{reason}`" for reason in result["reasons"])
    return f"{words(result)}; {count}{reasons}"


def main():
    record, check = sys.argv[1], "--check" in sys.argv[2:]
    file = json.loads((HERE / "cases.json").read_text())
    javas = json.loads(pathlib.Path(record).read_text())
    cases = file["cases"]
    if len(javas) != len(cases):
        sys.exit(f"{record} has {len(javas)} cases, cases.json {len(cases)}")
    cluster = Cluster("--nodes", "2", "--vbuckets", "64")
    wrong, rows = [], []
    try:
        for code, definition in file["error_map"].items():
            cluster.call("PUT", f"/error-map/{code}", definition)
        for at, (case, java) in enumerate(zip(cases, javas)):
            java, steadfast = normalised(java), normalised(ours(cluster, case, f"fault:{at}"))
            sentence = case.get("difference", "")
            if differs(java, steadfast, case) != bool(sentence):
                wrong.append(f"{case['operation']}, {case['name']}: {java} {steadfast} {sentence!r}")
            cells = [case["operation"], case["name"], cell(java, case), cell(steadfast, case), sentence]
            rows.append(f"| {' | '.join(cells)} |")
    finally:
        cluster.stop()
    pom = (HERE.parent / "java" / "pom.xml").read_text()
    version = re.search(r"java-client</artifactId>\s*<version>([\d.]+)", pom).group(1)
    page = HEAD.format(java=version) + "\n".join(rows) + "\n"
    if wrong:
        print(*wrong, sep="\n")
        sys.exit("a case differs without a sentence, or has a sentence without a difference")
    if check and PAGE.read_text() != page:
        sys.exit(f"{PAGE.name} is out of date: run interop/faults/compare.py without --check")
    if not check:
        PAGE.write_text(page)
    print(f"compared: {len(rows)} cases, {sum('difference' in case for case in cases)} differences")


main()
