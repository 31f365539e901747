"""Checks the files of the repository.

- No file names the host of a package registry or a path of a developer's machine.
- Links in Markdown files lead to files that exist.
- No module doc begins with a question word, so that a list of them can be scanned.
- The root of the engine shows at most 30 names.
- Two public types have two names, and so have two types of one crate.

Lock files are left out: tools write them, and they name their registry.
"""

import re
import subprocess
import sys
from pathlib import Path

# Written so that this file does not match itself.
FORBIDDEN = {
    "a package registry's host": re.compile(
        r"\b(crates[.]io|pypi[.]org|pythonhosted[.]org|npmjs[.](org|com)|deb[.]debian[.]org)"
    ),
    "a path of a developer's machine": re.compile(r"(?<![\w.~}])/(?:work|tmp|root|home|Users)/"),
}
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
LOCK_FILES = {"Cargo.lock", "package-lock.json"}
QUESTION = re.compile(r"//! (What|How|Where|Whether|Who)\b")
ENGINE_ROOT = Path("crates/steadfast/src/lib.rs")
MOST_NAMES = 30
TYPE = re.compile(r"^(pub(?:\([^)]*\))? )?(?:struct|enum|trait|union|type) (\w+)", re.M)
# A crate's error is `Error`, as everywhere. The others are one type for two platforms, or
# with and without a feature.
SHARED_NAMES = {
    "Error",
    "steadfast-cli::StopSignals",
    "steadfast-cli::TerminalSettings",
    "steadfast-couchbase::Durations",
}


def main() -> int:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
    ).stdout
    files = [Path(name) for name in listed.decode().split("\0") if name]
    problems = []
    types: dict[str, list[Path]] = {}
    for path in files:
        if path.name in LOCK_FILES or path.is_symlink() or not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # seeds of the fuzz targets
        for number, line in enumerate(text.splitlines(), 1):
            for what, pattern in FORBIDDEN.items():
                if found := pattern.search(line):
                    problems.append(f"{path}:{number}: {what}: {found[0]}")
            if path.suffix == ".md":
                problems += [f"{path}:{number}: no such file: {link}" for link in dead(path, line)]
        if path.suffix == ".rs" and (found := QUESTION.match(text)):
            problems.append(f"{path}:1: a module doc begins with {found[1]!r}: name the module's job")
        for name in type_names(path, text):
            types.setdefault(name, []).append(path)
    for name, paths in types.items():
        if len(paths) > 1 and name not in SHARED_NAMES:
            problems.append(f"{paths[0]}: the type {name} is also in {paths[1]}: give one of them another name")
    names = root_names(ENGINE_ROOT.read_text(encoding="utf-8"))
    if len(names) > MOST_NAMES:
        problems.append(f"{ENGINE_ROOT}: {len(names)} names at the root, at most {MOST_NAMES} are allowed")
    print(*problems, sep="\n", file=sys.stderr)
    print(f"{len(files)} files, {len(problems)} problems")
    return 1 if problems else 0


def root_names(source: str) -> list[str]:
    """The names that the root of a crate re-exports."""
    uses = re.findall(r"^pub use [\w:]*?(\w+|\{[^}]*\});", source, re.M)
    return [name for use in uses for name in re.findall(r"\w+", use)]


def type_names(path: Path, source: str) -> list[str]:
    """The types of a file: each in its crate, and the public ones in the workspace. Tests are left out."""
    parts = path.parts
    if parts[0] != "crates" or parts[2:3] != ("src",) or path.suffix != ".rs" or "tests" in path.with_suffix("").parts:
        return []
    found = TYPE.findall(source)
    return [f"{parts[1]}::{name}" for _, name in found] + [name for public, name in found if public == "pub "]


def dead(path: Path, line: str) -> list[str]:
    """The links in a line that point to no file."""
    targets = [link.split("#")[0] for link in LINK.findall(line)]
    return [
        target
        for target in targets
        if target and "://" not in target and not (path.parent / target).exists()
    ]


if __name__ == "__main__":
    sys.exit(main())
