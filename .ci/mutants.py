"""Plants bugs one by one in a copy of the tree, and checks that a test notices each.

    python3 .ci/mutants.py                  all of .ci/mutations/index.txt
    python3 .ci/mutants.py NAME ...         only these
    python3 .ci/mutants.py --part 3/16      every 16th, from the third on

A bug that no test notices is a failure, and so is a patch that no longer applies or
does not compile. A test that hangs has noticed the bug.
"""

import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PATCHES = ROOT / ".ci/mutations"
COPY = ROOT / "target/mutants"
# Longer than any of these tests runs.
TIME_LIMIT = 120


def main() -> int:
    rows = selected(sys.argv[1:])
    copy_tree()
    survivors = []
    for number, (name, crate, test) in enumerate(rows, 1):
        begin = time.monotonic()
        verdict = try_bug(name, crate, test)
        took = time.monotonic() - begin
        print(f"{number:3}/{len(rows)}  {took:4.0f} s  {verdict:11}  {name}", flush=True)
        if verdict != "noticed":
            survivors.append(name)
    noticed = len(rows) - len(survivors)
    print(f"{noticed} of {len(rows)} bugs were noticed")
    return 1 if survivors else 0


def selected(arguments: list[str]) -> list[tuple[str, str, str]]:
    lines = (PATCHES / "index.txt").read_text().splitlines()
    cells = [line.split(" | ", 2) for line in lines if not line.startswith("#")]
    rows = [(name, crate, test) for name, crate, test in cells]
    if arguments[:1] == ["--part"]:
        part, parts = map(int, arguments[1].split("/"))
        return rows[part - 1 :: parts]
    unknown = set(arguments) - {name for name, _, _ in rows}
    if unknown:
        sys.exit(f"not in .ci/mutations/index.txt: {', '.join(sorted(unknown))}")
    return [row for row in rows if not arguments or row[0] in arguments]


def copy_tree() -> None:
    """Copies the files that git knows. Unchanged files keep their time, and are not rebuilt."""
    COPY.mkdir(parents=True, exist_ok=True)
    files = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    tar = ["tar", "--create", "--null", "--files-from=-"]
    packed = subprocess.run(tar, cwd=ROOT, input=files, check=True, capture_output=True)
    unpack = ["tar", "--extract", "--directory", str(COPY)]
    subprocess.run(unpack, input=packed.stdout, check=True)


def try_bug(name: str, crate: str, test: str) -> str:
    patch = PATCHES / f"{name}.patch"
    if not apply(patch):
        return "not applied"
    try:
        build = run_test(crate, test, "--no-run", limit=None)
        if build != 0:
            return "not built"
        return "noticed" if run_test(crate, test, limit=TIME_LIMIT) != 0 else "SURVIVED"
    finally:
        apply(patch, "--reverse")


def apply(patch: pathlib.Path, *options: str) -> bool:
    command = ["patch", "--strip=1", "--fuzz=0", "--silent", *options, "--input", str(patch)]
    return subprocess.run(command, cwd=COPY).returncode == 0


def run_test(crate: str, test: str, *options: str, limit: float | None) -> int | None:
    """Returns the status of the test, or None if it hangs."""
    command = ["cargo", "test", "--quiet", "--package", crate, *test.split(), *options]
    # Dependencies are shared with the builds of the tree itself.
    target = ["--target-dir", str(ROOT / "target")]
    split = command.index(test.split()[-1])
    command = [*command[:split], *target, *command[split:]]
    try:
        done = subprocess.run(command, cwd=COPY, capture_output=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
