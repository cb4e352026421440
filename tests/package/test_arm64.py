# SPDX-License-Identifier: MIT
"""kxfs for arm64: cross-built with Debian's compiler and arm64 libraries, its unit tests run by qemu-user."""

import json
import os
import pathlib
import re

import harness
import pytest
from harness import ROOT

CROSS = """[binaries]
c = ['aarch64-linux-gnu-gcc', '--sysroot={root}']
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'pkg-config'
exe_wrapper = ['qemu-aarch64-static', '-L', '{root}']
[properties]
sys_root = '{root}'
pkg_config_libdir = '{root}/usr/lib/aarch64-linux-gnu/pkgconfig:{root}/usr/share/pkgconfig'
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
"""
# What bytes mean, and what becomes of them on disk. qemu-user is no kernel of arm64: what starts processes, speaks to servers
# or is a file system is tested where it runs by itself.
SUITES = ("spec_", "backend_base_", "backend_output_", "backend_jobs_")


@pytest.fixture(scope="module")
def cross(arm64, tmp_path_factory):
    top = tmp_path_factory.mktemp("cross")
    # An absolute link leads to a library of this machine, or nowhere, and the linker takes the static one.
    for path in filter(pathlib.Path.is_symlink, arm64.rglob("*.so*")):
        if path.readlink().is_absolute():
            target = arm64 / path.readlink().relative_to("/")
            path.unlink()
            path.symlink_to(os.path.relpath(target, path.parent))
    (top / "cross.ini").write_text(CROSS.format(root=arm64))
    env = {"HOME": str(top), "CCACHE_DIR": os.environ.get("CCACHE_DIR", "")}
    harness.run(["meson", "setup", top / "build", ROOT, "--cross-file", top / "cross.ini", "--optimization=1"], env=env,
                timeout=600)
    targets = [os.path.relpath(cmd, top / "build") for cmd in unit_tests(top / "build").values()]
    harness.run(["ninja", "-C", top / "build", "fs/kxfs", "contrib/completion/kxfs", *targets], env=env, timeout=1500)
    return top / "build"


def unit_tests(build):
    """{name: program} of those that run here."""
    found = json.loads(harness.run(["meson", "introspect", "--tests", build]).stdout)
    return {test["name"]: test["cmd"][0] for test in found if "unit" in test["suite"][0] and test["name"].startswith(SUITES)}


def test_program(cross, arm64):
    assert "AArch64" in harness.run(["readelf", "-h", cross / "fs/kxfs"]).stdout
    out = harness.run(["qemu-aarch64-static", "-L", arm64, cross / "fs/kxfs", "--version"]).stdout
    assert re.match(r"kxfs \S+\nlibraries: libfuse 3", out)
    dry = harness.run(["qemu-aarch64-static", "-L", arm64, cross / "fs/kxfs", f"--dry-run={ROOT}/contrib/examples/training.yaml",
                       "volcano:x", "-o", "queue=q"]).stdout
    assert "kind: Job" in dry
    # Completion is made by running it.
    assert "history_keep=" in (cross / "contrib/completion/kxfs").read_text()


def test_unit_tests(cross):
    wanted = unit_tests(cross)
    assert len(wanted) > 40
    p = harness.run(["meson", "test", "-C", cross, "--no-rebuild", "--timeout-multiplier", "40", *wanted], check=False,
                    timeout=1500)
    failed = [row["name"] for row in map(json.loads, (cross / "meson-logs/testlog.json").read_text().splitlines())
              if row["result"] != "OK"]
    assert p.returncode == 0 and not failed, (failed, p.stdout[-3000:])
