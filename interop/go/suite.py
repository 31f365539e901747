"""Runs the tests of gocbcore, the core of the official Go SDK, against the cluster.

The tests come with the Go module. They are copied below target/, because the module cache is
read-only, compiled, and run against a cluster of three nodes. `exclusions.txt` has the tests
that are left out, and why. Arguments go to the test binary, such as `-test.run NAME`.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

MODULE = "github.com/couchbase/gocbcore/v10@v10.8.1"
HERE = pathlib.Path(__file__).resolve().parent
WORK = HERE.parents[1] / "target" / "interop-go"
BINARY = os.environ["STEADFAST"]


def compiled():
    """The test binary and the folder of its sources."""
    sources, binary = WORK / "gocbcore", WORK / "gocbcore.test"
    stamp = WORK / "version"
    if not binary.exists() or not stamp.exists() or stamp.read_text() != MODULE:
        WORK.mkdir(parents=True, exist_ok=True)
        told = subprocess.run(
            ["go", "mod", "download", "-json", MODULE], cwd=WORK, capture_output=True, text=True
        )
        if told.returncode != 0:
            sys.exit(f"cannot download {MODULE}: {told.stdout}{told.stderr}")
        shutil.rmtree(sources, ignore_errors=True)
        shutil.copytree(json.loads(told.stdout)["Dir"], sources)
        for path in [sources, *sources.rglob("*")]:
            path.chmod(path.stat().st_mode | 0o200)
        subprocess.run(["go", "test", "-c", "-o", str(binary), "."], cwd=sources, check=True)
        stamp.write_text(MODULE)
    return binary, sources


def excluded():
    lines = (HERE / "exclusions.txt").read_text().splitlines()
    return [line.split()[0] for line in lines if line and not line.startswith("#")]


def main():
    binary, sources = compiled()
    cluster = subprocess.Popen(
        [BINARY, "cluster", "--nodes", "3", "--bucket", "default", "--replicas", "1"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        address = None
        for line in cluster.stdout:
            if line.startswith("connect"):
                address = line.split()[1]
            if line.startswith("up;"):
                break
        if address is None:
            sys.exit("the cluster did not start")
        command = [
            str(binary),
            "-test.v",
            "-test.timeout=10m",
            f"-test.skip=^TestStandardSuite$/^({'|'.join(excluded())})$",
            f"-connstr={address}",
            "-user=Administrator",
            "-pass=password",
            "-cluster-version=7.6.4",
            *sys.argv[1:],
        ]
        tests = subprocess.run(
            command, cwd=sources, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    finally:
        cluster.terminate()
        cluster.wait()
    (WORK / "gocbcore.log").write_text(tests.stdout)
    found = {kind: [] for kind in ("PASS", "FAIL", "SKIP")}
    for kind, name in re.findall(r"^ *--- (PASS|FAIL|SKIP): (\S+)", tests.stdout, re.MULTILINE):
        found[kind].append(name)
    for name in found["FAIL"]:
        print("failed:", name)
    counts = {kind: len(names) for kind, names in found.items()}
    print(f"gocbcore: {counts['PASS']} passed, {counts['FAIL']} failed, {counts['SKIP']} skipped")
    print(f"the whole log: {WORK / 'gocbcore.log'}")
    # The suite also fails after its last test, if it has leaked a goroutine of its own.
    if found["FAIL"] or not found["PASS"]:
        sys.exit(1)


main()
