"""Runs `steadfast load`, and sees that its accounting holds.

    python3 .ci/load.py PROGRAM              fixed seeds and a fresh one, each must hold
    python3 .ci/load.py PROGRAM --broken     a build that breaks the law must be caught

Every run meets every act of the calamity. That all of them had their effect is asked of
the runs together: one may miss a fault by chance, and not all of them.
"""

import json
import random
import subprocess
import sys

SECONDS = 8
SEEDS = [4711, 20, 300]
OPTIONS = [f"--duration={SECONDS}s", "--timeout=1s", "--concurrency=64", "--rate=8000", "--quiet", "--json"]
REASONS = {
    "KV_NOT_MY_VBUCKET",
    "KV_TEMPORARY_FAILURE",
    "KV_LOCKED",
    "SOCKET_NOT_AVAILABLE",
    "SOCKET_CLOSED_WHILE_IN_FLIGHT",
}
# Others come and go: a write that waits for a late answer is often cut off before its time is up.
ERRORS = {"RequestCanceled", "AuthenticationFailure"}


def main() -> int:
    match sys.argv[1:]:
        case [program]:
            return whole(program)
        case [program, "--broken"]:
            return broken(program)
    print(__doc__, file=sys.stderr)
    return 2


def whole(program: str) -> int:
    reasons, errors = set(), set()
    for seed in [*SEEDS, random.randrange(1_000_000)]:
        status, report = load(program, seed)
        if status != 0 or not report["accounting"]["holds"]:
            tell(report)
            return 1
        reasons |= {one["reason"] for one in report["retries"]}
        errors |= set(report["operations"]["errors"])
    missed = (REASONS - reasons) | (ERRORS - errors)
    if missed:
        print(f"no run met {', '.join(sorted(missed))}: the calamity is not what it was", file=sys.stderr)
    return 1 if missed else 0


def broken(program: str) -> int:
    """The check is seen to fail: a write in flight that is sent again is applied twice."""
    for seed in SEEDS:
        status, report = load(program, seed)
        if status != 0 and report["accounting"]["applied_twice"] > 0:
            print(f"caught: {report['accounting']['applied_twice']} writes applied twice")
            return 0
    print("a build that retries writes in flight was not caught", file=sys.stderr)
    return 1


def load(program: str, seed: int) -> tuple[int, dict]:
    command = [program, "load", f"--seed={seed}", *OPTIONS]
    print("+", *command, flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=20 * SECONDS)
    report = json.loads(done.stdout)
    accounting, operations = report["accounting"], report["operations"]
    print(
        f"  {operations['operations']} operations, {accounting['acknowledged']} writes acknowledged,"
        f" {accounting['ambiguous']} ambiguous ({accounting['ambiguous_applied']} applied);"
        f" lost {accounting['lost']}, applied twice {accounting['applied_twice']},"
        f" unexplained {accounting['unexplained']}",
        flush=True,
    )
    return done.returncode, report


def tell(report: dict) -> None:
    for violation in report["accounting"]["violations"]:
        print(json.dumps(violation, indent=2), file=sys.stderr)
    print(f"the accounting does not hold; again: {report['replay']}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
