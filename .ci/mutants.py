"""Plants bugs one by one in copies of the tree, and checks that each is noticed.

    python3 .ci/mutants.py                  all of .ci/mutations/index.txt
    python3 .ci/mutants.py NAME ...         only these
    python3 .ci/mutants.py --part 3/12      the third of twelve parts
    python3 .ci/mutants.py --lanes 1 ...    one bug at a time, instead of one for each core

First every check must pass without a bug, and a test must have run. Then a bug that its check
does not notice is a failure, and so is a patch that does not apply or does not compile. A check
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

ROOT = pathlib.Path(__file__).resolve().parent.parent
PATCHES = ROOT / ".ci/mutations"
LANES = ROOT / "target/mutants"
# How long a check may run without a bug, in seconds. Most take less than one.
TIME_LIMIT = 600
# Rows of one test binary that a lane takes at a time.
BATCH = 12


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    crate: str
    check: str

    @property
    def words(self) -> list[str]:
        return self.check.split()

    @property
    def expected_error(self) -> str | None:
        """The compiler's error that notices the bug, if the compiler is the check."""
        return self.words[1] if self.words[0] == "error" else None

    @property
    def build(self) -> list[str]:
        """The command that builds the check."""
        package = ["--package", self.crate]
        match self.words:
            # Without a package, features of dependencies are those of `cargo test`, so that
            # what the tree has built of them can be used.
            case ["--test", name, *_] if len(list(ROOT.glob(f"crates/*/tests/{name}*"))) == 1:
                return ["test", "--no-run", "--test", name]
            case ["run", *_]:
                return ["build", *package]
            case ["error", _]:
                return ["test", "--no-run", *package, "--lib"]
        return ["test", "--no-run", *package, *self.options]

    @property
    def options(self) -> list[str]:
        """The options of `cargo test` that name the test binary."""
        last = max(i for i, word in enumerate(self.words) if word.startswith("--"))
        return self.words[: last + (2 if self.words[last] in ("--test", "--features") else 1)]

    @property
    def arguments(self) -> list[str]:
        """The arguments of the program: what follows `run --`, or filters of tests."""
        match self.words:
            case ["run", "--", *arguments]:
                return arguments
            case ["error", _]:
                return ["--list"]
        return self.words[len(self.options) :]


class Lane:
    """A copy of the tree, in which one bug is planted at a time."""

    def __init__(self, number: int) -> None:
        self.tree = LANES / f"{number}/tree"
        self.target = LANES / f"{number}/target"
        # How long checks took without a bug.
        self.passed: dict[Row, float] = {}

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
        unbroken = dataclasses.replace(row, name="")
        if unbroken not in self.passed:
            broken, took = self.check(row, TIME_LIMIT)
            if broken != "SURVIVED":
                return f"without a bug: {broken}"
            self.passed[unbroken] = took
        patch = PATCHES / f"{row.name}.patch"
        files = [line[6:] for line in patch.read_text().splitlines() if line.startswith("+++ b/")]
        originals = {self.tree / file: (self.tree / file).read_bytes() for file in files}
        command = ["patch", "--strip=1", "--fuzz=0", "--batch", "--input", str(patch)]
        try:
            if subprocess.run(command, cwd=self.tree, capture_output=True).returncode != 0:
                return "not applied"
            # The machine may be busier than it was.
            return self.check(row, 60 + 5 * self.passed[unbroken])[0]
        finally:
            for file, content in originals.items():
                write(file, content)

    def check(self, row: Row, limit: float) -> tuple[str, float]:
        """Builds and runs a check. Returns its verdict, and how long it ran."""
        cargo = ["cargo", *row.build, "--message-format=json", "--target-dir", str(self.target)]
        # A bug changes a line or two.
        environment = {**os.environ, "CARGO_INCREMENTAL": "1"}
        built = subprocess.run(cargo, cwd=self.tree, capture_output=True, env=environment)
        messages = [json.loads(line) for line in built.stdout.splitlines() if line[:1] == b"{"]
        if built.returncode != 0:
            codes = {((one.get("message") or {}).get("code") or {}).get("code") for one in messages}
            return "noticed" if row.expected_error in codes - {None} else "not built", 0
        is_test = row.build[0] == "test"
        built = [one for one in messages if one.get("executable")]
        programs = [one["executable"] for one in built if one["profile"]["test"] == is_test]
        if len(programs) != 1:
            return f"built as {len(programs)} programs", 0
        # As cargo runs tests.
        inside = self.tree / "crates" / row.crate
        begin = time.monotonic()
        status, output = run_limited([programs[0], *row.arguments], inside, limit)
        took = time.monotonic() - begin
        if status is None:
            return "hangs", took
        if status != 0:
            return "noticed", took
        if is_test and b"running 0 tests" in output:
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
    noticed = sum(verdict in ("noticed", "hangs") for verdict in verdicts.values())
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{noticed} of {len(rows)} bugs were noticed in {time.monotonic() - begin:.0f} s, "
        f"{used.ru_utime + used.ru_stime:.0f} s of processor time"
    )
    return 0 if noticed == len(rows) else 1


def selected(arguments: list[str]) -> list[Row]:
    lines = (PATCHES / "index.txt").read_text().splitlines()
    rows = [Row(*line.split(" | ", 2)) for line in lines if not line.startswith("#")]
    unlisted = {patch.stem for patch in PATCHES.glob("*.patch")} ^ {row.name for row in rows}
    if unlisted or len({row.name for row in rows}) != len(rows):
        sys.exit(f"a patch needs one row in .ci/mutations/index.txt: {', '.join(sorted(unlisted))}")
    # What is built for one check is there for the next.
    rows.sort(key=lambda row: (row.build, row.check))
    if arguments[:1] == ["--part"]:
        part, parts = map(int, arguments[1].split("/"))
        return rows[len(rows) * (part - 1) // parts : len(rows) * part // parts]
    unknown = set(arguments) - {row.name for row in rows}
    if unknown:
        sys.exit(f"not in .ci/mutations/index.txt: {', '.join(sorted(unknown))}")
    return [row for row in rows if not arguments or row.name in arguments]


def batched(rows: list[Row]) -> list[list[Row]]:
    """Groups rows of the same test binary."""
    batches: list[list[Row]] = []
    for row in rows:
        if batches and len(batches[-1]) < BATCH and batches[-1][0].build == row.build:
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
