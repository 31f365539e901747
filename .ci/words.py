"""Looks through the files of the repository for what should not be in them.

- The host of a package registry, or a path of somebody's machine: a stranger's
  checkout has neither.
- A link in a Markdown file to a file that is not there.

Lock files are left out: they are written by tools and name their registry.
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
    "a path of somebody's machine": re.compile(r"(?<![\w.~}])/(?:work|tmp|root|home|Users)/"),
}
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
LOCK_FILES = {"Cargo.lock", "package-lock.json"}


def main() -> int:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
    ).stdout
    files = [Path(name) for name in listed.decode().split("\0") if name]
    problems = []
    for path in files:
        if path.name in LOCK_FILES or not path.is_file():
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
                problems += [f"{path}:{number}: leads nowhere: {link}" for link in dead(path, line)]
    print(*problems, sep="\n", file=sys.stderr)
    print(f"{len(files)} files, {len(problems)} problems")
    return 1 if problems else 0


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
