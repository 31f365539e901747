"""Puts the binary named by STEADFAST into the wheel, beside the interpreter when installed.

The tag of the wheel follows from the binary: its platform, and the newest glibc that it needs.
A wheel without the binary is pure Python, and takes `steadfast` from the PATH.
"""

import os
import platform
import re
import sys

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BinaryHook(BuildHookInterface):
    def initialize(self, version, build_data):
        binary = os.environ.get("STEADFAST")
        if not binary or version == "editable":
            return
        build_data["shared_scripts"] = {binary: "steadfast"}
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(binary)}"


def platform_tag(binary):
    if sys.platform != "linux":
        raise SystemExit(f"wheels with the binary are not built on {sys.platform} yet")
    with open(binary, "rb") as file:
        needed = re.findall(rb"GLIBC_2\.(\d+)", file.read())
    if not needed:
        raise SystemExit(f"{binary} is not linked with glibc")
    return f"manylinux_2_{max(map(int, needed))}_{platform.machine()}"
