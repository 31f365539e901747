"""Copies source files into the guides that show them.

A comment `<!-- file: PATH -->` stands in front of a block of code, which is the whole file. The
tests of the command check that the two are the same; this script makes them so.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHOWN = re.compile(r"(<!-- file: (\S+) -->\n```\w*\n).*?(^```$)", re.M | re.S)

for guide in sorted((ROOT / "docs").glob("*.md")):
    text = guide.read_text(encoding="utf-8")
    copied = SHOWN.sub(lambda m: m[1] + (ROOT / m[2]).read_text(encoding="utf-8") + m[3], text)
    if copied != text:
        guide.write_text(copied, encoding="utf-8")
        print(f"updated {guide.relative_to(ROOT)}")
