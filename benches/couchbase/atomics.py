#!/usr/bin/env python3
"""Counts the atomic writes of one operation, by function.

An atomic write takes its cache line away from all other processors, so their
number says what more threads would cost. One thread is enough to count them:
callgrind counts how often each instruction is executed, objdump says which ones
write atomically (`lock`, or `xchg` with memory), and addr2line names their
functions. Two runs of different lengths are subtracted, so that connecting does
not count. Atomic writes in shared libraries are not counted.

usage: atomics.py [CONTENDER] [OP]     (steadfast|official|floor, get|upsert)
"""

import collections
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
PROGRAM = HERE / "target/release/steadfast-benches-couchbase"
DEPTH, FEW, MANY = 64, 6400, 19200
# Inlined helpers that say less than their caller.
HELPERS = re.compile(
    r"^<?(core|alloc|std)::|^(lock_api|parking_lot|parking_lot_core)::|^<?arc_swap::"
    r"|^(fetch_|compare_|swap|sub<|add<|atomic_|drop|deref|with|clone|get_debt|pay|lock|unlock|load|store|new|take|wait)"
)


def atomic_instructions():
    """The addresses of atomic writes in the program."""
    dump = subprocess.Popen(
        ["objdump", "-d", "--no-show-raw-insn", PROGRAM], stdout=subprocess.PIPE, text=True
    )
    found = {}
    for line in dump.stdout:
        address, _, text = line.partition(":\t")
        if text.startswith("lock ") or (text.startswith("xchg ") and "(" in text):
            found[int(address, 16)] = text.strip()
    if dump.wait() != 0 or not found:
        raise SystemExit("objdump found no atomic instruction")
    return found


def counts(arguments, atomics):
    """How often each atomic instruction of the program was executed."""
    with tempfile.NamedTemporaryFile(mode="r", prefix="atomics-") as out:
        command = ["valgrind", "--tool=callgrind", "--dump-instr=yes", "--compress-pos=no"]
        command += ["--compress-strings=no", f"--callgrind-out-file={out.name}", PROGRAM, *arguments]
        subprocess.run(command, check=True, capture_output=True)
        executed = collections.Counter()
        inside, call = False, False
        for line in out:
            if line.startswith("ob="):
                inside = line.rstrip().endswith(PROGRAM.name)
            elif line.startswith("calls="):
                # The next line is the cost of the called function.
                call = True
            elif line.startswith("0x"):
                address, _, cost = line.split()
                address = int(address, 16)
                if not call and inside and address in atomics:
                    executed[address] += int(cost)
                call = False
        return executed


def functions(addresses):
    """The function of each address: the innermost that is no helper."""
    wanted = "\n".join(hex(address) for address in addresses)
    said = subprocess.run(
        ["addr2line", "-aifC", "-e", PROGRAM], input=wanted, capture_output=True, text=True, check=True
    )
    names, address = {}, None
    chains = collections.defaultdict(list)
    lines = said.stdout.splitlines()
    at = 0
    while at < len(lines):
        if lines[at].startswith("0x"):
            address = int(lines[at], 16)
            at += 1
        else:
            chains[address].append(lines[at])
            at += 2
    for address, chain in chains.items():
        telling = [name for name in chain if not HELPERS.search(name)]
        names[address] = (telling or chain)[0]
    return names


def main():
    contender, op = (sys.argv[1:] + ["steadfast", "get"][len(sys.argv) - 1 :])[:2]
    atomics = atomic_instructions()
    server = subprocess.Popen(
        [PROGRAM, "--serve", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    address = server.stdout.readline().strip()
    try:
        run = lambda count: counts(
            ["--only", contender, op, str(DEPTH), str(count), "one", address], atomics
        )
        few, many = run(FEW), run(MANY)
    finally:
        server.stdin.close()
        server.wait()
    names = functions(many)
    by_function = collections.Counter()
    for instruction in many:
        each = (many[instruction] - few[instruction]) / (MANY - FEW)
        by_function[names[instruction]] += each
    print(f"{contender} {op}, {DEPTH} in flight, one thread\n")
    print("| function | atomic writes |\n|---|--:|")
    for name, count in by_function.most_common():
        if count >= 0.05:
            print(f"| `{name}` | {count:.2f} |")
    print(f"| all | {sum(by_function.values()):.2f} |")



main()
