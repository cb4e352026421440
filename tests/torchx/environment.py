# SPDX-License-Identifier: MIT
"""Python environments with a real TorchX from PyPI, and the wheel of kxfs: TorchX 0.7.0, and the
nightly that tests/golden/torchx_env.py chooses. KXFS_TORCHX_ENVIRONMENTS is a directory that keeps
them from run to run. Also: what the tests of TorchX's commands share."""

import fcntl
import os
import pathlib
import re
import shutil
import sys
import venv

import harness
from harness import ROOT, run

sys.path.insert(1, str(ROOT / "tests/golden"))

import torchx_env  # noqa: E402

SOURCE = ROOT / "contrib/torchx"
VERSION = re.search(r"^    version: '(.*)',$", (ROOT / "meson.build").read_text(), re.M)[1]
PACKAGES = {"0.7.0": ["torchx==0.7.0"], "nightly": [torchx_env.PACKAGES[torchx_env.LATER][0], "mypy==2.4.1"]}


class Environment:
    def __init__(self, version, path):
        self.version = version
        self.path = pathlib.Path(path)
        self.python = self.path / "bin/python"
        self.torchx = self.path / "bin/torchx"
        self.complete = self.path / "complete"

    @property
    def can_delete(self):
        """Return whether this TorchX has `delete`, and a `cancel` that keeps the job."""
        return self.version != "0.7.0"

    def install(self):
        """Install the wheel of the tested program, as a user does."""
        top = self.path / "wheel"
        shutil.rmtree(top, ignore_errors=True)
        build = pathlib.Path(os.environ.get("KXFS_BINARY", ROOT / "build/fs/kxfs")).resolve().parents[1]
        run(["meson", "install", "-C", build, "--no-rebuild"], env={"DESTDIR": str(top / "installed")}, timeout=300)
        [program] = (top / "installed").rglob("bin/kxfs")
        name = run([ROOT / "contrib/wheel", program.parents[1], VERSION, os.uname().machine, top]).stdout.strip()
        torchx_env.install(self.python, "--force-reinstall", top / name)


def make(version, config, tmp_path_factory, kept=None):
    """Return the environment of a version, in the directory KEPT if given. The package is installed
    once for all workers of a run."""
    scratch = tmp_path_factory.getbasetemp()
    if hasattr(config, "workerinput"):
        scratch = scratch.parent  # shared by all workers
    kept = pathlib.Path(os.environ.get("KXFS_TORCHX_ENVIRONMENTS") or kept or scratch)
    environment = Environment(version, kept / version)
    mark = scratch / f"torchx-{version}.ready"
    with open(scratch / f"torchx-{version}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not mark.exists():
            if not environment.complete.exists():
                venv.create(environment.path, clear=True, with_pip=True)
                torchx_env.install(environment.python, *PACKAGES[version], constrained=torchx_env.TRIED == torchx_env.LATER)
                environment.complete.touch()
            environment.install()
            mark.touch()
    return environment


# --- Commands ---------------------------------------------------------------------------------

# The start of a user's program, with `runner` and a job of one role.
PRELUDE = """
import datetime, json, os, warnings
from torchx.runner import get_runner
from torchx.specs import AppDef, AppState, Role
from torchx.schedulers.api import Stream
warnings.simplefilter("ignore")
runner = get_runner()
def answer(value):
    print(json.dumps(value))
def sh(script, name="app", **fields):
    return AppDef(name, [Role("main", image="none", entrypoint="sh", args=["-c", script.replace("$", "$$")], **fields)])
"""
SH = ("utils.sh", "--image", "none", "sh", "-c")
# Unmounts the lines of its input, which have the format of mountinfo, without accessing the mounts.
UNMOUNT = r"""while read -r one; do umount -lc "$(printf %b "${one//\\/\\0}")" 2>/dev/null; done"""


def launched(p):
    """Return the handle that `torchx run` printed."""
    [handle] = [line for line in p.stdout.splitlines() if line.startswith("kxfs://")]
    return handle


def ident(handle):
    return handle.rpartition("/")[2]


def job(kx, handle):
    return harness.Job(kx, ident(handle))


def error_of(p):
    """Return the last line of the traceback with which a command failed."""
    assert p.returncode != 0, p.stdout
    text = p.stderr[p.stderr.rindex("\ntorchx_kxfs.mount.KxfsError: "):]
    return text.partition("Error: ")[2].strip()
