#!/usr/bin/env bash
# Checks that each crate can be published: its metadata, and that the packages build in the
# order of their dependencies from nothing but what is packed.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 - <<'PYTHON'
import json, subprocess, sys
text = subprocess.run(["cargo", "metadata", "--no-deps", "--format-version", "1"], check=True, capture_output=True).stdout
wrong = []
for package in json.loads(text)["packages"]:
    if package["publish"] == []:
        continue
    for field in ["description", "license", "readme", "rust_version", "keywords", "categories"]:
        if not package[field]:
            wrong.append(f"{package['name']} has no {field}")
    if len(package["keywords"]) > 5:
        wrong.append(f"{package['name']} has more than five keywords")
print("\n".join(wrong) or "metadata: complete")
sys.exit(bool(wrong))
PYTHON
# One call for all crates: cargo orders them, and resolves each against the others' packages.
cargo package --workspace --exclude steadfast-benches --locked "$@"
