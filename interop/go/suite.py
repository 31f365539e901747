"""Runs the tests that come with the official Go SDK, gocb, and with its core, gocbcore.

The tests come with the Go modules. They are copied below target/, because the module cache is
read-only, compiled, and run against a cluster of three nodes. `exclusions.txt` has the tests
that are left out, and why. A test that fails runs once more, alone; the output says so.

    interop/go/suite.py [gocbcore | gocb] [ARGUMENT…]

Arguments go to the test binary, such as `-test.run NAME`.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
WORK = HERE.parents[1] / "target" / "interop-go"
BINARY = os.environ["STEADFAST"]
LOGIN = ["-user=Administrator", "-pass=password"]

# The module, the suites in which exclusions apply, and the options of its test binary.
MODULES = {
    "gocbcore": (
        "github.com/couchbase/gocbcore/v10@v10.8.1",
        "TestStandardSuite",
        lambda address: [f"-connstr={address}", "-cluster-version=7.6.4", *LOGIN],
    ),
    "gocb": (
        "github.com/couchbase/gocb/v2@v2.11.1",
        "TestIntegration",
        lambda address: [f"-server={address}", "-version=7.6.4", "-disable-logger", *LOGIN],
    ),
}


# Tests that cancel a request before its response. They run apart, on a cluster that takes its
# time: otherwise the response is often faster.
RACES = {
    "gocbcore": [
        "TestTelemetryOrphanedResponses",
        "TestZombieLoggerComponentCancelledOps",
        "TestStatsTimeout",
    ],
    "gocb": [r"Test\w+Context", "TestRangeScanRangeCancellation"],
}


def start():
    """Starts a cluster; returns its process and what it prints about itself."""
    cluster = subprocess.Popen(
        [BINARY, "cluster", "--json", "--nodes", "3", "--bucket", "default", "--replicas", "1"],
        stdout=subprocess.PIPE,
        text=True,
    )
    return cluster, json.loads(cluster.stdout.readline())


def slow_down(facts):
    """Delays the requests that these tests cancel."""
    rules = [{"opcode": opcode, "delay_ms": 50} for opcode in ("SET", "GET", "STAT")]
    # A scan continues in each of 1024 vbuckets.
    rules.append({"opcode": "RANGE_SCAN_CONTINUE", "delay_ms": 5})
    services = ("query", "analytics", "search", "views")
    rules += [{"service": service, "delay_ms": 50} for service in services]
    for rule in rules:
        request = urllib.request.Request(
            f"http://{facts['control']}/faults",
            json.dumps({**rule, "effect": "delay"}).encode(),
            {
                "Authorization": f"Bearer {facts['control_token']}",
                "Content-Type": "application/json",
            },
        )
        urllib.request.urlopen(request).close()


def fetch(command, folder):
    """Runs a command that downloads; ends as it does if it fails."""
    fetched = subprocess.run([HERE.parent / "fetch", *command], cwd=folder)
    if fetched.returncode != 0:
        sys.exit(fetched.returncode)


def compiled(name, module):
    """Returns the test binary and the folder of its sources."""
    sources, binary, stamp = WORK / name, WORK / f"{name}.test", WORK / f"{name}.version"
    if not binary.exists() or not stamp.exists() or stamp.read_text() != module:
        WORK.mkdir(parents=True, exist_ok=True)
        download = ["go", "mod", "download", "-json", module]
        fetch(download, WORK)
        told = subprocess.run(download, cwd=WORK, stdout=subprocess.PIPE, text=True, check=True)
        shutil.rmtree(sources, ignore_errors=True)
        shutil.copytree(json.loads(told.stdout)["Dir"], sources)
        for path in [sources, *sources.rglob("*")]:
            path.chmod(path.stat().st_mode | 0o200)
        fetch(["go", "mod", "download"], sources)
        subprocess.run(["go", "test", "-c", "-o", str(binary), "."], cwd=sources, check=True)
        stamp.write_text(module)
    return binary, sources


def excluded(name):
    """Returns the tests of a module that are left out."""
    lines = (HERE / "exclusions.txt").read_text().splitlines()
    words = [line.split(None, 2) for line in lines if line and not line.startswith("#")]
    return [test for module, test, _reason in words if module == name]


def tested(command, sources):
    """Runs a test binary and returns its output."""
    run = subprocess.run(
        command, cwd=sources, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace",
    )
    return run.stdout


def results(output):
    """Returns the tests that passed, failed and skipped themselves."""
    found = {kind: [] for kind in ("PASS", "FAIL", "SKIP")}
    for kind, test in re.findall(r"^ *--- (PASS|FAIL|SKIP): (\S+)", output, re.MULTILINE):
        found[kind].append(test)
    return found


def run(name, arguments):
    """Runs the tests of a module; returns whether they passed."""
    module, suite, options = MODULES[name]
    binary, sources = compiled(name, module)
    cluster, facts = start()
    try:
        address = facts["connect"]
        command = [str(binary), "-test.v", "-test.timeout=10m", *options(address), *arguments]
        skip = f"-test.skip=^{suite}$/^({'|'.join([*excluded(name), *RACES[name]])})$"
        output = tested([*command, skip], sources)
        found = results(output)
        finished = suite in found["PASS"] + found["FAIL"]
        # The suites have deadlines of their own, which a busy machine can miss.
        again = [test for test in found["FAIL"] if "/" in test]
        for test in again:
            path = "/".join(f"^{part}$" for part in test.split("/"))
            repeated = tested([*command, f"-test.run={path}"], sources)
            output += repeated
            if not results(repeated)["FAIL"] and test in results(repeated)["PASS"]:
                print("failed, and passed alone:", test)
                found["FAIL"].remove(test)
                found["PASS"].append(test)
        if again and found["FAIL"] == [suite]:
            found["FAIL"].remove(suite)
        if not arguments:
            slow_down(facts)
            raced = tested([*command, f"-test.run=^{suite}$/^({'|'.join(RACES[name])})$"], sources)
            output += raced
            for kind, tests in results(raced).items():
                found[kind] += [test for test in tests if "/" in test]
    finally:
        cluster.terminate()
        cluster.wait()
    log = WORK / f"{name}.log"
    log.write_text(output)
    for test in found["FAIL"]:
        print("failed:", test)
    counts = {kind: len(tests) for kind, tests in found.items()}
    print(
        f"{name}: {counts['PASS']} passed, {counts['FAIL']} failed, {counts['SKIP']} skipped, "
        f"{len(excluded(name))} excluded"
    )
    print(f"the whole log: {log}", flush=True)
    if not finished:
        print(f"{suite} did not come to its end")
    # The status is of no use: it is a failure too if a suite has leaked a goroutine of its own.
    return finished and not found["FAIL"]


def main():
    arguments = sys.argv[1:]
    names = [arguments.pop(0)] if arguments and arguments[0] in MODULES else list(MODULES)
    passed = [run(name, arguments) for name in names]
    if not all(passed):
        sys.exit(1)


main()
