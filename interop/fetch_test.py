"""Checks that `interop/fetch` and the suites tell an unreachable registry from a failure.

    python3 interop/fetch_test.py

Each tool is pointed at a closed port. A tool that is not installed is left out.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CLOSED = "http://127.0.0.1:9/"
SKIPPED = 75

SETTINGS = f"""<settings><mirrors><mirror>
<id>closed</id><mirrorOf>*</mirrorOf><url>{CLOSED}</url>
</mirror></mirrors></settings>"""


def cases(scratch):
    """Yields a tool, its command, its environment and the wanted status."""
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", scratch]
    pip_closed = {"PIP_INDEX_URL": CLOSED, "PIP_RETRIES": "1", "PIP_CONFIG_FILE": os.devnull}
    yield "python3", [*pip, "pytest==8.4.2"], pip_closed, SKIPPED
    # The registry is not to blame for a file that does not exist.
    yield "python3", [*pip, "--requirement", f"{scratch}/none.txt"], pip_closed, 1
    npm_closed = {
        "npm_config_registry": CLOSED, "npm_config_fetch_retries": "0",
        "npm_config_cache": f"{scratch}/npm",
    }
    yield "npm", ["npm", "install", "--prefix", scratch, "couchbase"], npm_closed, SKIPPED
    go_closed = {"GOPROXY": CLOSED, "GOMODCACHE": f"{scratch}/go", "GOFLAGS": "-modcacherw"}
    module = "github.com/couchbase/gocb/v2@v2.11.1"
    yield "go", ["go", "mod", "download", "-json", module], go_closed, SKIPPED
    cargo_closed = {
        "CARGO_HOME": f"{scratch}/cargo", "CARGO_HTTP_PROXY": CLOSED, "CARGO_NET_RETRY": "0",
    }
    manifest = str(HERE / "rust" / "Cargo.toml")
    fetch = ["cargo", "fetch", "--locked", "--manifest-path", manifest]
    yield "cargo", fetch, cargo_closed, SKIPPED
    settings = pathlib.Path(scratch, "settings.xml")
    settings.write_text(SETTINGS)
    mvn = ["mvn", "--batch-mode", "--settings", str(settings), f"-Dmaven.repo.local={scratch}/m2"]
    pom = str(HERE / "java" / "pom.xml")
    yield "mvn", [*mvn, "--file", pom, "test-compile"], {}, SKIPPED
    yield "false", ["false"], {}, 1
    yield "true", ["true"], {}, 0
    # A suite is skipped as a whole. The binary is never started.
    whole = {**cargo_closed, "STEADFAST": "/bin/false"}
    yield "cargo", [str(HERE / "run"), "rust-suite"], whole, SKIPPED


def main():
    wrong = []
    for tool, command, environment, wanted in cases(tempfile.mkdtemp()):
        if shutil.which(tool) is None:
            print(f"left out, because {tool} is not installed: {' '.join(command)}")
            continue
        script = [] if command[0].endswith("/run") else [str(HERE / "fetch")]
        run = subprocess.run(
            [*script, *command], env={**os.environ, **environment}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        says_so = "skipped" in run.stdout
        if run.returncode != wanted or says_so != (wanted == SKIPPED):
            wrong.append(f"{' '.join(command)}: {run.returncode} instead of {wanted}\n{run.stdout}")
    print("\n".join(wrong) if wrong else "every status is as expected")
    sys.exit(bool(wrong))


main()
