#!/usr/bin/env python3
"""Audits the official Couchbase SDKs and ours, and writes docs/beside-the-sdks.md.

    interop/audit/couchbase/run.py              audit all, write the page
    interop/audit/couchbase/run.py python go    audit these, print their reports

Installs the SDKs below target/. Set STEADFAST to use another binary than the release build. The
status is 1 if a case of our client is not as the RFCs say.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BUILT = ROOT / "target" / "interop-audit"
PAGE = ROOT / "docs" / "beside-the-sdks.md"
FETCH = ROOT / "interop" / "fetch"
JARS, CLASSES = BUILT / "java" / "jars", BUILT / "java" / "classes"
DRIVERS = {
    "ours": [ROOT / "target" / "debug" / "examples" / "couchbase_driver"],
    "rust": [BUILT / "couchbase-rust" / "debug" / "examples" / "driver"],
    "java": ["java", "-cp", f"{CLASSES}:{JARS}/*", "Driver"],
    "go": [BUILT / "couchbase-go"],
    "python": [BUILT / "venv" / "bin" / "python", HERE / "driver.py"],
    "node": ["node", HERE / "driver.mjs"],
}
HEAD = """# Beside the SDKs

`steadfast audit couchbase` runs each SDK through a small driver against the test cluster, one fault at \
a time. [The page about it](audit-couchbase.md) explains the ratings. `interop/audit/couchbase/run.py` \
writes this page. Each SDK has its usual settings: none is told how to retry.

"""
BETWEEN = """
In {same} of {all} cases every SDK does what the RFCs say. The others follow; an empty cell means *conforms*.

RFC 0049 lists the query error 4040. A server responds with it only to prepared statements, and these were not.

"""


def main() -> int:
    names = sys.argv[1:] or list(DRIVERS)
    if unknown := set(names) - set(DRIVERS):
        print(f"unknown SDKs: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    binary = os.environ.get("STEADFAST", str(ROOT / "target" / "release" / "steadfast"))
    install(names)
    reports = {}
    for name in names:
        print(f"== {name}", flush=True)
        format = [] if sys.argv[1:] else ["--json"]
        ran = subprocess.run(
            [binary, "audit", "couchbase", *format, "--", *DRIVERS[name]],
            stdout=subprocess.PIPE if format else None,
            stderr=subprocess.DEVNULL if name == "java" else None,
        )
        # 6 says that a case is unsafe, which the page shows.
        if ran.returncode not in (0, 6):
            return ran.returncode
        if format:
            reports[name] = json.loads(ran.stdout)
    if not reports:
        return 0
    PAGE.write_text(page(reports))
    ours = [case for case in reports["ours"]["cases"] if case["rating"] != "conforms"]
    for case in ours:
        print(f"our client: {case['title']}: {case['rating']}: {case['reason']}", file=sys.stderr)
    return 1 if ours else 0


def install(names) -> None:
    BUILT.mkdir(parents=True, exist_ok=True)

    def run(*command, cwd=HERE):
        status = subprocess.run([FETCH, *command], cwd=cwd).returncode
        if status:
            sys.exit(status)

    if "STEADFAST" not in os.environ:
        run("cargo", "build", "--quiet", "--release", "--package", "steadfast-cli", cwd=ROOT)
    if "ours" in names:
        run("cargo", "build", "--quiet", "--package", "steadfast-audit", "--examples", cwd=ROOT)
    if "rust" in names:
        environment = f"CARGO_TARGET_DIR={BUILT / 'couchbase-rust'}"
        manifest = ROOT / "interop" / "rust" / "Cargo.toml"
        run("env", environment, "cargo", "build", "--quiet", "--locked", "--manifest-path", manifest, "--example", "driver")
    if "python" in names:
        if not (BUILT / "venv" / "bin" / "python").exists():
            run(sys.executable, "-m", "venv", BUILT / "venv")
        requirements = ROOT / "interop" / "python" / "requirements.txt"
        pip = BUILT / "venv" / "bin" / "pip"
        run(pip, "install", "-q", "--disable-pip-version-check", "-r", requirements)
    if "node" in names:
        run("npm", "install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error")
    if "go" in names:
        run("go", "build", "-o", BUILT / "couchbase-go", ".")
    if "java" in names:
        pom = ROOT / "interop" / "java" / "pom.xml"
        copy = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={JARS}"]
        run("mvn", "--quiet", "--batch-mode", "--file", pom, f"-Dsteadfast.target={BUILT / 'java' / 'target'}", *copy)
        run("javac", "-cp", f"{JARS}/*", "-d", CLASSES, HERE / "Driver.java")


def page(reports) -> str:
    names = [report["sdk"].split("+")[0] for report in reports.values()]
    lines = ["| SDK | unsafe | differs | not seen | conforms |", "|---|---|---|---|---|"]
    for name, report in zip(names, reports.values()):
        ratings = [case["rating"] for case in report["cases"]]
        counts = [str(ratings.count(rating)) for rating in ("unsafe", "differs", "not_seen", "conforms")]
        lines.append(f"| {name} | {' | '.join(counts)} |")
    rows = list(zip(*(report["cases"] for report in reports.values())))
    differing = [row for row in rows if any(case["rating"] != "conforms" for case in row)]
    table = [f"| case | document | {' | '.join(names)} |", "|---" * (len(names) + 2) + "|"]
    for row in differing:
        cells = [cell(case) for case in row]
        table.append(f"| {row[0]['title']} | {row[0]['rule']} | {' | '.join(cells)} |")
    between = BETWEEN.format(same=len(rows) - len(differing), all=len(rows))
    return HEAD + "\n".join(lines) + "\n" + between + "\n".join(table) + "\n"


def cell(case) -> str:
    match case["rating"]:
        case "conforms":
            return ""
        case "differs":
            return case["reason"].split("; it printed:")[0].split("\n")[0]
        case rating:
            return f"**{rating.replace('_', ' ')}**: {case['reason']}"


if __name__ == "__main__":
    sys.exit(main())
