#!/usr/bin/env python3
"""Audits the clients of clients.toml and writes docs/audit.md.

    interop/audit/run.py                audit all clients, write the page
    interop/audit/run.py curl-retry     audit these clients again
    interop/audit/run.py --quick        the quick ones, with few cases; checks `expect`

Installs the clients below target/. Set STEADFAST to use another binary than the release build.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILT = ROOT / "target" / "interop-audit"
PAGE = ROOT / "docs" / "audit.md"
FETCH = ROOT / "interop" / "fetch"
BEGIN, END = "<!-- written by interop/audit/run.py -->", "<!-- end -->"
# In a quick run: whether a POST is sent again, and whether a GET is.
QUICK = ["--methods", "GET,POST", "--only", "/closed/once", "--only", "/reset/once", "--only", "/503/once", "--only", "/429-after-2/"]


def main() -> int:
    names = [name for name in sys.argv[1:] if name != "--quick"]
    quick = "--quick" in sys.argv
    clients = tomllib.loads((HERE / "clients.toml").read_text())
    if unknown := set(names) - set(clients):
        print(f"unknown clients: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    chosen = {
        name: client
        for name, client in clients.items()
        if (name in names if names else client.get("quick") or not quick)
    }
    install(chosen.values())
    failed = []
    for name, client in chosen.items():
        print(f"== {name}", flush=True)
        expected = ["--expect", client["expect"]] if "expect" in client else []
        if quick:
            command = [binary(), "audit", "http", *QUICK, *expected, "--", *words(client)]
            status = subprocess.run(command).returncode
        else:
            options = ["--json", "--html", BUILT / f"{name}.html"]
            command = [binary(), "audit", "http", *options, *expected, "--", *words(client)]
            with (BUILT / f"{name}.json").open("w") as report:
                status = subprocess.run(command, stdout=report).returncode
        if status:
            failed.append(name)
    if not quick and not failed:
        write(clients)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def binary() -> str:
    return os.environ.get("STEADFAST", str(ROOT / "target" / "release" / "steadfast"))


def words(client) -> list[str]:
    # Not str.format: {url} and {method} are for the audit.
    return [word.replace("{here}", str(HERE)).replace("{built}", str(BUILT)) for word in client["command"]]


def install(clients) -> None:
    """Installs what the clients need."""
    BUILT.mkdir(parents=True, exist_ok=True)

    def run(*command, cwd=None, **environment):
        status = subprocess.run([FETCH, *command], cwd=cwd, env={**os.environ, **environment}).returncode
        if status:
            sys.exit(status)

    if "STEADFAST" not in os.environ:
        run("cargo", "build", "--quiet", "--release", "--package", "steadfast-cli", cwd=ROOT)
    if any("packages" in client for client in clients):
        if not (BUILT / "venv" / "bin" / "python").exists():
            run(sys.executable, "-m", "venv", BUILT / "venv")
        pip = BUILT / "venv" / "bin" / "pip"
        run(pip, "install", "-q", "--disable-pip-version-check", "-r", HERE / "python" / "requirements.txt")
    if any("node" in client for client in clients):
        run("npm", "install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error", cwd=HERE / "node")
    if any("go" in client for client in clients):
        run("go", "build", "-o", BUILT / "go-retryablehttp", ".", cwd=HERE / "go")
    if any("java" in client for client in clients):
        jars = BUILT / "resilience4j"
        copy = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
        run("mvn", "--quiet", "--batch-mode", "--file", HERE / "java" / "pom.xml", *copy)
        run("javac", "-cp", f"{jars}/*", "-d", jars, HERE / "java" / "Resilience4j.java")
    if any("crate" in client for client in clients):
        run("cargo", "build", "--quiet", "--locked", cwd=HERE / "rust", CARGO_TARGET_DIR=str(BUILT / "rust"))


def version(client) -> str:
    def output(*command, cwd=None):
        return subprocess.run(command, check=True, capture_output=True, text=True, cwd=cwd).stdout

    if "version" in client:
        return re.search(r"\d+(\.\d+)+", output(*client["version"]))[0]
    if "packages" in client:
        python = BUILT / "venv" / "bin" / "python"
        script = "import importlib.metadata as m, sys; print(', '.join(f'{p} {m.version(p)}' for p in sys.argv[1:]))"
        return output(python, "-c", script, *client["packages"]).strip()
    if "node" in client:
        return json.loads((HERE / "node" / "node_modules" / client["node"] / "package.json").read_text())["version"]
    if "go" in client:
        return output("go", "list", "-m", "-f", "{{.Version}}", client["go"], cwd=HERE / "go").strip()
    if "java" in client:
        jar = next((BUILT / "resilience4j").glob(f"{client['java']}-*.jar"))
        return jar.stem.removeprefix(client["java"] + "-")
    packages = json.loads(output("cargo", "metadata", "--format-version", "1", "--locked", cwd=HERE / "rust"))["packages"]
    return next(package["version"] for package in packages if package["name"] == client["crate"])


def write(clients) -> None:
    """Writes the tables of the page, from the reports of all clients."""
    files = {name: BUILT / f"{name}.json" for name in clients}
    if missing := [name for name, file in files.items() if not file.exists()]:
        print(f"the page is not written: no report of {', '.join(missing)}", file=sys.stderr)
        return
    reports = {name: json.loads(file.read_text()) for name, file in files.items()}
    lines = [
        "| client | version | configured |",
        "|---|---|---|",
        *(f"| {c['title']} | {version(c)} | {c['configured']} |" for c in clients.values()),
        "",
        "| client | unsafe | storm | rude | gives up early | not seen | good |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, client in clients.items():
        counts = [sum(case["rating"] == rating for case in reports[name]["cases"]) for rating in RATINGS]
        lines.append(f"| {client['title']} | " + " | ".join(map(str, counts)) + " |")
    lines += [
        "",
        "| client | a POST was sent again after | came back before `Retry-After` of a | storm |",
        "|---|---|---|---|",
    ]
    for name, client in clients.items():
        cells = [
            repeated(reports[name], "POST", "unsafe"),
            repeated(reports[name], None, "rude"),
            "; ".join(sorted({reason(case) for case in rated(reports[name], "storm")})) or "–",
        ]
        lines.append(f"| {client['title']} | " + " | ".join(cells) + " |")
    text = PAGE.read_text()
    head, rest = text.split(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}\n\n" + "\n".join(lines) + f"\n\n{END}{rest.split(END)[1]}")


RATINGS = ["unsafe", "storm", "rude", "gives_up_early", "not_seen", "good"]


def rated(report, rating):
    return [case for case in report["cases"] if case["rating"] == rating]


def reason(case) -> str:
    return case["reason"].split(":")[0]


def repeated(report, kind, rating) -> str:
    """The faults after which a request arrived again."""
    if kind and kind not in report["kinds"]:
        return "not sent"
    cases = [case for case in rated(report, rating) if case["kind"] == kind or not kind]
    faults = dict.fromkeys(short(case) for case in cases)
    return ", ".join(faults) or "–"


def short(case) -> str:
    """The fault in a word or two, from the name of the case."""
    fault = case["id"].split("/")[1]
    names = {"cut": "cut response", "silent": "no response", "early": "early response", "drip": "slow response"}
    return names.get(fault) or (fault[:3] if fault[:3].isdigit() else fault)


if __name__ == "__main__":
    sys.exit(main())
