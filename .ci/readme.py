"""Checks that the commands which README.md shows exist.

Each `cargo run …` of a code block, and each `steadfast …` in the text, is asked
for its help; `cargo test` is a step of its own. A command of another kind is a
failure, so that every command in README.md is checked.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

BLOCK_LINE = re.compile(r"^    (\S.*)$", re.MULTILINE)
SH_BLOCK = re.compile(r"^```(?:sh|bash|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`steadfast ([a-z][a-z-]*)[^`]*`")


def main() -> int:
    text = Path("README.md").read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    lines = BLOCK_LINE.findall(prose)
    lines += [line for block in SH_BLOCK.findall(text) for line in block.splitlines()]
    commands = [shlex.split(line, comments=True) for line in lines]
    commands += [["steadfast", name] for name in INLINE.findall(text)]
    failed = [command for command in commands if command and not exists(command)]
    for command in failed:
        print(f"README.md: not a command that works: {shlex.join(command)}", file=sys.stderr)
    if not commands:
        print("README.md: shows no command at all", file=sys.stderr)
    return 1 if failed or not commands else 0


def exists(command: list[str]) -> bool:
    match command:
        case ["cargo", "test"]:
            return True
        case ["cargo", "run", *rest]:
            # Whether it is there does not depend on how it is optimised.
            options = [word for word in rest if word != "--release"]
            arguments = options if "--" in options else [*options, "--"]
            return run(["cargo", "run", "--quiet", *arguments, "--help"])
        case ["steadfast", *rest]:
            # What follows is the command of another program.
            rest = rest[: rest.index("--")] if "--" in rest else rest
            return run(["cargo", "run", "--quiet", "--bin", "steadfast", "--", *rest, "--help"])
    return False


def run(command: list[str]) -> bool:
    print(shlex.join(command))
    return subprocess.run(command, stdout=subprocess.DEVNULL).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
