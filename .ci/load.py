"""Runs `steadfast load` and checks its accounting.

    python3 .ci/load.py PROGRAM
        Runs fixed seeds and a fresh one, one with TLS, and one with thousands of operations in
        flight. The accounting of each run must hold.

Every run injects every fault. A single run may miss the effect of a fault by chance,
so the effects are looked for in all runs together.
"""

import json
import random
import subprocess
import sys

SECONDS = 8
SEEDS = [4711, 20, 300]
OPTIONS = [f"--duration={SECONDS}s", "--timeout=1s", "--rate=8000", "--quiet", "--json"]
FEW = "--concurrency=64"
REASONS = {
    "KV_NOT_MY_VBUCKET",
    "KV_TEMPORARY_FAILURE",
    "KV_LOCKED",
    "SOCKET_NOT_AVAILABLE",
    "SOCKET_CLOSED_WHILE_IN_FLIGHT",
}
# Other errors vary: the cut often comes before the timeout of a write whose answer is late.
ERRORS = {"RequestCanceled", "AuthenticationFailure"}


def main() -> int:
    match sys.argv[1:]:
        case [program]:
            return check_accounting(program)
    print(__doc__, file=sys.stderr)
    return 2


def check_accounting(program: str) -> int:
    reasons, errors = set(), set()
    runs = [(seed, [FEW]) for seed in [*SEEDS, random.randrange(1_000_000)]]
    # With TLS, the certificate is rotated, too.
    runs += [(SEEDS[0], [FEW, "--tls"]), (SEEDS[0], [])]
    for seed, options in runs:
        report = load(program, seed, options)
        if not holds(report["accounting"]):
            print_violations(report)
            return 1
        reasons |= {one["reason"] for one in report["retries"]}
        errors |= set(report["operations"]["errors"])
    missed = (REASONS - reasons) | (ERRORS - errors)
    if missed:
        print(f"no run met {', '.join(sorted(missed))}: the faults of the load no longer cause it", file=sys.stderr)
    return 1 if missed else 0


def holds(accounting: dict) -> bool:
    """Whether no promise was broken, and every write was checked."""
    return accounting["holds"]


def load(program: str, seed: int, options: list[str]) -> dict:
    command = [program, "load", f"--seed={seed}", *OPTIONS, *options]
    print("+", *command, flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=20 * SECONDS)
    report = json.loads(done.stdout)
    accounting, operations = report["accounting"], report["operations"]
    print(
        f"  {operations['operations']} operations, {accounting['acknowledged']} writes acknowledged,"
        f" {accounting['ambiguous']} ambiguous ({accounting['ambiguous_applied']} applied);"
        f" lost {accounting['lost']}, applied twice {accounting['applied_twice']},"
        f" unexplained {accounting['unexplained']}, unchecked {accounting['unchecked']}",
        flush=True,
    )
    return report


def print_violations(report: dict) -> None:
    for violation in report["accounting"]["violations"]:
        print(json.dumps(violation, indent=2), file=sys.stderr)
    print(f"the accounting does not hold; to repeat: {report['replay']}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
