#!/usr/bin/env python3
"""Counts the connections and round trips of a cold start, from its system calls.

    python3 benches/couchbase/round_trips.py

It needs strace and the release build of the benchmark. A round trip is a send that is
followed by a receive on the same socket. Trips on several sockets may overlap, so it
prints the number on each.
"""

import collections
import pathlib
import re
import subprocess
import tempfile

PROGRAM = pathlib.Path(__file__).parent / "target/release/steadfast-benches-couchbase"
CALL = re.compile(r"(\w+)\((\d+)(?:<([^>]*)>)?.*\) += (-?\d+)")
SENDS = {"sendto", "sendmsg", "write", "writev"}
RECEIVES = {"recvfrom", "recvmsg", "read", "readv"}


def trace(contender: str, server: str) -> list[str]:
    """Runs a cold start, and returns its system calls in order."""
    with tempfile.NamedTemporaryFile() as log:
        calls = ",".join(["connect", "close", *SENDS, *RECEIVES])
        command = ["strace", "-f", "-yy", "-s", "0", "-e", f"trace={calls}", "-o", log.name]
        subprocess.run([*command, PROGRAM, "--cold", contender, server], check=True)
        return pathlib.Path(log.name).read_text().splitlines()


def count(lines: list[str]) -> dict[str, list[int]]:
    """Returns sends, receives and round trips of each TCP socket."""
    counts: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0, 0])
    sent: set[str] = set()
    for line in lines:
        found = CALL.search(line)
        if not found or int(found[4]) <= 0 or not (found[3] or "").startswith("TCP"):
            continue
        call, socket = found[1], found[3]
        if call in SENDS:
            counts[socket][0] += 1
            sent.add(socket)
        elif call in RECEIVES:
            counts[socket][1] += 1
            if socket in sent:
                counts[socket][2] += 1
                sent.discard(socket)
    return counts


def main() -> None:
    for nodes in (1, 3):
        cluster = subprocess.Popen(
            [PROGRAM, "--serve", str(nodes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        server = cluster.stdout.readline().strip()
        # The documents.
        subprocess.run(
            [PROGRAM, "--only", "steadfast", "get", "1", "1", "one", server],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        for contender in ("steadfast", "official"):
            counts = count(trace(contender, server))
            trips = sorted((trips for _, _, trips in counts.values()), reverse=True)
            sends = sum(sends for sends, _, _ in counts.values())
            receives = sum(receives for _, receives, _ in counts.values())
            print(
                f"{nodes} nodes, {contender}: {len(counts)} connections, "
                f"round trips on each {trips}, {sends} sends, {receives} receives"
            )
        cluster.stdin.close()
        cluster.wait()


if __name__ == "__main__":
    main()
