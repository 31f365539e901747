"""Plants bugs one by one in copies of the tree, and checks that each is noticed.

    python3 .ci/mutants.py                  all bugs of .ci/bugs/
    python3 .ci/mutants.py NAME ...         only these
    python3 .ci/mutants.py --changed HEAD~1 those in files that changed since a commit
    python3 .ci/mutants.py --rules [ID ...] the changes that rows of docs/conformance/ name
    python3 .ci/mutants.py --lanes 1 ...    one bug at a time, instead of one for each core

A bug is a file, a text that stands in it once, and the text to put in its place. `check` is a
crate and a filter of `cargo test`. A row of the conformance page has tests instead: one of them
must notice its change.

First every check must pass without a bug, and a test must have run. Then a bug that its check
does not notice is a failure, and so is one that cannot be planted or does not compile. A check
that takes much longer than without the bug has noticed it, too: it hangs.

A lane is a copy of the tree with its own target directory, both under target/mutants. A lane
builds what its rows need and keeps it, so a bug costs the build of a crate or two. The tree and
its own target directory are only read.
"""

import dataclasses
import json
import os
import pathlib
import queue
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUGS = ROOT / ".ci/bugs"
RULES = ROOT / "docs/conformance"
LANES = ROOT / "target/mutants"
# How long a check may run without a bug, in seconds. Most take less than one.
TIME_LIMIT = 600
# Bugs of one test binary that a lane takes at a time.
BATCH = 12
VERDICTS_OF_SUCCESS = ("noticed", "hangs")


@dataclasses.dataclass(frozen=True)
class Check:
    """A crate, the options of `cargo test` that name a test binary, and filters of its tests."""

    crate: str
    options: tuple[str, ...]
    filters: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "Check":
        crate, *words = text.split()
        last = max(i for i, word in enumerate(words) if word.startswith("--"))
        end = last + (2 if words[last] in ("--test", "--features") else 1)
        return cls(crate, tuple(words[:end]), tuple(words[end:]))

    @classmethod
    def of_test(cls, pin: str) -> "Check | None":
        """The check of a test `path#name`, if cargo can run it alone."""
        path, name = pin.split("#")
        match path.split("/"):
            case ["crates", crate, "src", *_] if not name.startswith("example:"):
                return cls(crate, ("--lib",), (name,))
            case ["crates", crate, "tests", binary, *_]:
                return cls(crate, ("--test", binary.removesuffix(".rs")), (name,))
        return None

    @property
    def build(self) -> list[str]:
        """The command that builds the check."""
        match self.options:
            # Without a package, features of dependencies are those of `cargo test`, so that
            # what the tree has built of them can be used.
            case ["--test", name] if len(list(ROOT.glob(f"crates/*/tests/{name}*"))) == 1:
                return ["test", "--no-run", "--test", name]
        return ["test", "--no-run", "--package", self.crate, *self.options]


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    # Files, each with a text that stands in it once and the one to put in its place.
    edits: tuple[tuple[str, str, str], ...]
    # One of them must notice.
    checks: tuple[Check, ...]

    @classmethod
    def of(cls, name: str, change: list[str], checks: list[Check]) -> "Row":
        edits = zip(change[0::3], change[1::3], change[2::3], strict=True)
        return cls(name, tuple(edits), tuple(checks))


class Lane:
    """A copy of the tree, in which one bug is planted at a time."""

    def __init__(self, number: int) -> None:
        self.tree = LANES / f"{number}/tree"
        self.target = LANES / f"{number}/target"
        # How long checks took without a bug.
        self.passed: dict[Check, float] = {}

    def prepare(self) -> None:
        listed = run(["git", "ls-files", "-z"], cwd=ROOT).stdout.decode().split("\0")
        files = {pathlib.Path(name) for name in listed if name and (ROOT / name).is_file()}
        for file in files:
            write(self.tree / file, (ROOT / file).read_bytes(), ROOT / file)
        for old in [path for path in self.tree.rglob("*") if path.is_file()]:
            if old.relative_to(self.tree) not in files:
                old.unlink()
        if not self.target.exists():
            copy_dependencies(ROOT / "target/debug", self.target / "debug")

    def verdict(self, row: Row) -> str:
        verdict = "no test that cargo can run alone"
        for check in row.checks:
            if check not in self.passed:
                without, took = self.run(check, TIME_LIMIT)
                if without != "SURVIVED":
                    return f"without a bug: {without}"
                self.passed[check] = took
            originals = {file: (self.tree / file).read_bytes() for file, *_ in row.edits}
            try:
                for file, old, new in row.edits:
                    text = (self.tree / file).read_text()
                    if text.count(old) != 1:
                        return f"{file} has the text {text.count(old)} times"
                    write(self.tree / file, text.replace(old, new).encode())
                # The machine may be busier than it was.
                verdict, _ = self.run(check, 60 + 5 * self.passed[check])
            finally:
                for file, content in originals.items():
                    write(self.tree / file, content)
            if verdict != "SURVIVED":
                break
        return verdict

    def run(self, check: Check, limit: float) -> tuple[str, float]:
        """Builds and runs a check. Returns its verdict, and how long it ran."""
        cargo = ["cargo", *check.build, "--message-format=json", "--target-dir", str(self.target)]
        # A bug changes a line or two.
        environment = {**os.environ, "CARGO_INCREMENTAL": "1"}
        built = subprocess.run(cargo, cwd=self.tree, capture_output=True, env=environment)
        if built.returncode != 0:
            return "not built", 0
        messages = [json.loads(line) for line in built.stdout.splitlines() if line[:1] == b"{"]
        built = [one for one in messages if one.get("executable") and one["profile"]["test"]]
        if len(built) != 1:
            return f"built as {len(built)} programs", 0
        # As cargo runs tests.
        inside = self.tree / "crates" / check.crate
        begin = time.monotonic()
        status, output = run_limited([built[0]["executable"], *check.filters], inside, limit)
        took = time.monotonic() - begin
        if status is None:
            return "hangs", took
        if status != 0:
            return "noticed", took
        if b"running 0 tests" in output:
            return "no such test", took
        return "SURVIVED", took


def main() -> int:
    arguments = sys.argv[1:]
    lanes = os.cpu_count() or 1
    if arguments[:1] == ["--lanes"]:
        lanes, arguments = int(arguments[1]), arguments[2:]
    rows = selected(arguments)
    batches: queue.Queue[list[Row]] = queue.Queue()
    for batch in batched(rows):
        batches.put(batch)
    verdicts: dict[str, str] = {}
    begin = time.monotonic()

    def work(lane: Lane) -> None:
        lane.prepare()
        while True:
            try:
                batch = batches.get_nowait()
            except queue.Empty:
                return
            for row in batch:
                since = time.monotonic()
                verdicts[row.name] = verdict = lane.verdict(row)
                took = time.monotonic() - since
                print(f"{len(verdicts):3}/{len(rows)}  {took:4.0f} s  {verdict:11}  {row.name}", flush=True)

    threads = [threading.Thread(target=work, args=(Lane(n),)) for n in range(lanes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    noticed = sum(verdict in VERDICTS_OF_SUCCESS for verdict in verdicts.values())
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{noticed} of {len(rows)} bugs were noticed in {time.monotonic() - begin:.0f} s, "
        f"{used.ru_utime + used.ru_stime:.0f} s of processor time"
    )
    return 0 if noticed == len(rows) else 1


def selected(arguments: list[str]) -> list[Row]:
    if arguments[:1] == ["--rules"]:
        arguments, source, rows = arguments[1:], RULES, rules()
    else:
        source, rows = BUGS, bugs()
    # What is built for one check is there for the next.
    rows.sort(key=lambda row: [(check.build, check.filters) for check in row.checks])
    if arguments[:1] == ["--changed"]:
        diff = run(["git", "diff", "--name-only", arguments[1]], cwd=ROOT)
        changed = set(diff.stdout.decode().splitlines())
        return [row for row in rows if changed & {file for file, *_ in row.edits}]
    unknown = set(arguments) - {row.name for row in rows}
    if unknown:
        sys.exit(f"not in {source.relative_to(ROOT)}: {', '.join(sorted(unknown))}")
    return [row for row in rows if not arguments or row.name in arguments]


def bugs() -> list[Row]:
    return [
        Row.of(name, row["change"], [Check.parse(row["check"])])
        for name, row in tables(BUGS).items()
    ]


def rules() -> list[Row]:
    rows = []
    for name, row in tables(RULES).items():
        if "change" in row:
            checks = map(Check.of_test, row["tests"])
            rows.append(Row.of(name, row["change"], [check for check in checks if check]))
    return rows


def tables(folder: pathlib.Path) -> dict[str, dict]:
    """The tables of all TOML files of a folder."""
    found: dict[str, dict] = {}
    for path in sorted(folder.glob("*.toml")):
        for name, table in tomllib.loads(path.read_text()).items():
            if isinstance(table, dict) and found.setdefault(name, table) is not table and name != "parts":
                sys.exit(f"{name} is there twice")
    return found


def batched(rows: list[Row]) -> list[list[Row]]:
    """Groups rows of the same test binary."""

    def build(row: Row) -> list[str] | None:
        return row.checks[0].build if row.checks else None

    batches: list[list[Row]] = []
    for row in rows:
        if batches and len(batches[-1]) < BATCH and build(batches[-1][0]) == build(row):
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches


def write(path: pathlib.Path, content: bytes, like: pathlib.Path | None = None) -> None:
    """Writes a file if it differs. Its time is then new, so cargo builds it again."""
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    if like is not None:
        shutil.copymode(like, path)


def copy_dependencies(built: pathlib.Path, target: pathlib.Path) -> None:
    """Copies what the tree has built of other people's crates, with its times."""
    if not built.exists():
        return
    for folder in (".fingerprint", "build", "deps"):
        (target / folder).mkdir(parents=True)
        for entry in (built / folder).iterdir():
            if "steadfast" in entry.name:
                continue
            if entry.is_dir():
                shutil.copytree(entry, target / folder / entry.name, symlinks=True)
            elif entry.suffix in (".d", ".rlib", ".rmeta", ".so"):
                shutil.copy2(entry, target / folder)


def run(command: list[str], cwd: pathlib.Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True)


def run_limited(
    command: list[str], cwd: pathlib.Path, limit: float
) -> tuple[int | None, bytes]:
    """Runs a program. Ends it and its children, and returns no status, if it hangs."""
    environment = {**os.environ, "CARGO_MANIFEST_DIR": str(cwd)}
    with subprocess.Popen(
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as program:
        try:
            output, _ = program.communicate(timeout=limit)
            return program.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)
            program.communicate()
            return None, b""


if __name__ == "__main__":
    sys.exit(main())
