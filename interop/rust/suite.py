"""Runs the tests that come with the official Rust SDK, the crate `couchbase`.

The tests come with the crate. Its sources are copied below target/, because the registry's are
shared, compiled, and run against a cluster of three nodes. `exclusions.txt` has the tests that
are left out, and why. A test that fails runs once more, alone; the output says so.

    interop/rust/suite.py [ARGUMENT…]

Arguments go to the test binaries, such as the whole name of a test.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
WORK = HERE.parents[1] / "target" / "interop-rust-suite"
BINARY = os.environ["STEADFAST"]
# SCRAM hashes a password thousands of times for each connection.
PROFILE = [f"profile.dev.package.{name}.opt-level=3" for name in ("digest", "hmac", "pbkdf2")]
PROFILE.append("profile.dev.debug=false")


def compiled():
    """Returns the test binaries by their names, and the folder of the sources."""
    found = subprocess.run(
        ["cargo", "metadata", "--locked", "--format-version=1"],
        cwd=HERE, stdout=subprocess.PIPE, text=True, check=True,
    )
    packages = json.loads(found.stdout)["packages"]
    package = next(package for package in packages if package["name"] == "couchbase")
    sources, stamp = WORK / "couchbase", WORK / "version"
    if not stamp.exists() or stamp.read_text() != package["version"]:
        shutil.rmtree(sources, ignore_errors=True)
        shutil.copytree(pathlib.Path(package["manifest_path"]).parent, sources)
        # The copy is below this workspace and not a part of it.
        with (sources / "Cargo.toml").open("a") as manifest:
            manifest.write("\n[workspace]\n")
        stamp.write_text(package["version"])
    fetched = subprocess.run([HERE.parent / "fetch", "cargo", "fetch", "--locked"], cwd=sources)
    if fetched.returncode != 0:
        sys.exit(fetched.returncode)
    command = ["cargo", "test", "--locked", "--tests", "--no-run", "--message-format=json"]
    command += [part for setting in PROFILE for part in ("--config", setting)]
    built = subprocess.run(
        command, cwd=sources, stdout=subprocess.PIPE, text=True, check=True,
        env={**os.environ, "CARGO_TARGET_DIR": str(WORK / "build")},
    )
    messages = [json.loads(line) for line in built.stdout.splitlines() if line.startswith("{")]
    binaries = {
        message["target"]["name"]: message["executable"]
        for message in messages
        if message.get("executable") and "test" in message["target"]["kind"]
    }
    return binaries, sources


def excluded():
    """Returns the tests that are left out, with their binaries."""
    lines = (HERE / "exclusions.txt").read_text().splitlines()
    words = [line.split(None, 2) for line in lines if line and not line.startswith("#")]
    return [(binary, test) for binary, test, _reason in words]


def tested(binary, arguments, sources, environment):
    """Runs a test binary; returns the tests that passed and failed, and its output."""
    run = subprocess.run(
        [binary, "--test-threads=1", *arguments], cwd=sources, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=600,
    )
    found = {"ok": [], "FAILED": []}
    for test, result in re.findall(r"^test (\S+)(?: - should panic)? \.\.\. .*?(ok|FAILED)$", run.stdout, re.M | re.S):
        found[result].append(test)
    finished = re.search(r"^test result: ", run.stdout, re.MULTILINE) is not None
    return found["ok"], found["FAILED"], finished, run.stdout


def main():
    binaries, sources = compiled()
    left_out = excluded()
    cluster = subprocess.Popen(
        [BINARY, "cluster", "--json", "--nodes", "3", "--bucket", "default", "--replicas", "1"],
        stdout=subprocess.PIPE, text=True,
    )
    passed, failed, log = 0, [], []
    try:
        address = json.loads(cluster.stdout.readline())["connect"]
        environment = {
            **os.environ, "RCBCONNSTR": address, "RCBSERVER_VERSION": "7.6.4", "RUST_LOG": "off",
        }
        for name, binary in sorted(binaries.items()):
            skips = [part for where, test in left_out if where == name for part in ("--skip", test)]
            arguments = [*sys.argv[1:], "--exact", *skips]
            ok, wrong, finished, output = tested(binary, arguments, sources, environment)
            log.append(output)
            # The suite has deadlines of its own, which a busy machine can miss.
            for test in list(wrong):
                again, _, _, output = tested(binary, ["--exact", test], sources, environment)
                log.append(output)
                if again == [test]:
                    print("failed, and passed alone:", test)
                    wrong.remove(test)
                    ok.append(test)
            passed += len(ok)
            failed += [f"{name} {test}" for test in wrong]
            if not finished:
                failed.append(f"{name} did not come to its end")
    finally:
        cluster.terminate()
        cluster.wait()
    path = WORK / "log.txt"
    path.write_text("".join(log))
    for test in failed:
        print("failed:", test)
    print(f"couchbase: {passed} passed, {len(failed)} failed, {len(left_out)} excluded")
    print(f"the whole log: {path}", flush=True)
    if failed or not passed:
        sys.exit(1)


main()
