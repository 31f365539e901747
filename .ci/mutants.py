"""Plants bugs one by one in a copy of the tree, and checks that each is noticed.

    python3 .ci/mutants.py                  all of .ci/mutations/index.txt
    python3 .ci/mutants.py NAME ...         only these
    python3 .ci/mutants.py --part 3/12      the third of twelve parts

A bug that its check does not notice is a failure, and so is a patch that no longer applies or
does not compile. A check that hangs has noticed the bug.
"""

import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PATCHES = ROOT / ".ci/mutations"
COPY = ROOT / "target/mutants"
# Longer than any of these checks runs.
TIME_LIMIT = 120


def main() -> int:
    rows = selected(sys.argv[1:])
    copy_tree()
    survivors = []
    try:
        for number, (name, crate, check) in enumerate(rows, 1):
            begin = time.monotonic()
            verdict = try_bug(name, crate, check)
            took = time.monotonic() - begin
            print(f"{number:3}/{len(rows)}  {took:4.0f} s  {verdict:11}  {name}", flush=True)
            if verdict != "noticed":
                survivors.append(name)
    finally:
        renew_sources()
    noticed = len(rows) - len(survivors)
    print(f"{noticed} of {len(rows)} bugs were noticed")
    return 1 if survivors else 0


def selected(arguments: list[str]) -> list[tuple[str, str, str]]:
    lines = (PATCHES / "index.txt").read_text().splitlines()
    cells = [line.split(" | ", 2) for line in lines if not line.startswith("#")]
    rows = [(name, crate, check) for name, crate, check in cells]
    # What is built for one check is there for the next.
    rows.sort(key=lambda row: (row[1], row[2]))
    if arguments[:1] == ["--part"]:
        part, parts = map(int, arguments[1].split("/"))
        return rows[len(rows) * (part - 1) // parts : len(rows) * part // parts]
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


def renew_sources() -> None:
    """Makes cargo build the tree again: to cargo, the copy's builds are those of the tree."""
    for source in ROOT.glob("crates/*/src/**/*.rs"):
        source.touch()


def try_bug(name: str, crate: str, check: str) -> str:
    patch = PATCHES / f"{name}.patch"
    if not apply(patch):
        return "not applied"
    try:
        if run_check(crate, check, build_only=True) != 0:
            return "not built"
        return "noticed" if run_check(crate, check, build_only=False) != 0 else "SURVIVED"
    finally:
        apply(patch, "--reverse")


def apply(patch: pathlib.Path, *options: str) -> bool:
    command = ["patch", "--strip=1", "--fuzz=0", "--silent", *options, "--input", str(patch)]
    return subprocess.run(command, cwd=COPY).returncode == 0


def run_check(crate: str, check: str, build_only: bool) -> int | None:
    """Builds or runs a check. Returns its status, or None if it hangs.

    A check is the filter of `cargo test`, or `run` with the arguments of a program.
    """
    words = check.split()
    # Dependencies are shared with the builds of the tree itself.
    options = ["--quiet", "--package", crate, "--target-dir", str(ROOT / "target")]
    if words[0] == "run":
        command = ["build"] if build_only else ["run"]
        words = [] if build_only else words[1:]
    else:
        command = ["test"]
        words = [*words[:-1], "--no-run", words[-1]] if build_only else words
    command = ["cargo", *command, *options, *words]
    # A bug changes a line or two.
    environment = {**os.environ, "CARGO_INCREMENTAL": "1"}
    limit = None if build_only else TIME_LIMIT
    try:
        done = subprocess.run(
            command, cwd=COPY, capture_output=True, timeout=limit, env=environment
        )
    except subprocess.TimeoutExpired:
        return None
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
