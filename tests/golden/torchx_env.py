# SPDX-License-Identifier: MIT
"""The real TorchX, from PyPI, in a separate Python environment: 0.7.0, with which manifests are
compatible, and a later version that has JSON output.

KXFS_TORCHX_PYTHON and KXFS_TORCHX_LATER_PYTHON name a Python that already has it. KXFS_TORCHX_LATER
is the version of torchx-nightly to install, "newest" for the newest one. KXFS_TORCHX_DIR keeps the
environments for several runs."""

import fcntl
import hashlib
import os
import pathlib
import subprocess
import time
import venv

FIRST = "0.7.0"
LATER = "2026.10.26"  # the version of torchx-nightly whose output was recorded
TRIED = os.environ.get("KXFS_TORCHX_LATER", LATER)
KUBERNETES = "kubernetes==31.0.0"
PACKAGES = {FIRST: [f"torchx=={FIRST}", KUBERNETES],
            LATER: ["torchx-nightly" if TRIED == "newest" else f"torchx-nightly=={TRIED}", KUBERNETES,
                    "hydra-core==1.3.2"]}
# Packages of TorchX and others, in the versions with which the tests were written.
CONSTRAINTS = pathlib.Path(__file__).resolve().parents[1] / "torchx/constraints.txt"
TRIES = 3
PYTHONS = {FIRST: "KXFS_TORCHX_PYTHON", LATER: "KXFS_TORCHX_LATER_PYTHON"}


def python(where, version=FIRST):
    """Return a Python that has this TorchX. If there is none, create it in the directory WHERE."""
    given = os.environ.get(PYTHONS[version])
    if given:
        return pathlib.Path(given)
    shared = os.environ.get("KXFS_TORCHX_DIR")
    if not shared:
        return make(pathlib.Path(where), version)
    wanted = hashlib.sha256(f"{PACKAGES[version]} {CONSTRAINTS.read_text()}".encode()).hexdigest()
    path = pathlib.Path(shared, f"{version}-{wanted[:8]}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{path}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return path / "bin/python" if (path / "complete").exists() else make(path, version)


def install(python, *packages, constrained=True):
    """Install PACKAGES for PYTHON. pip itself retries failed connections, but not downloads that
    break off."""
    options = ["-q", "--retries", "8", "--timeout", "30", *(["-c", CONSTRAINTS] if constrained else [])]
    for n in range(TRIES):
        if n:
            time.sleep(5 * n)
        p = subprocess.run([python, "-m", "pip", "install", *options, *packages], stdin=subprocess.DEVNULL, check=False,
                           timeout=900, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if p.returncode == 0:
            return
    raise AssertionError(f"{packages} can't be installed from PyPI:\n{p.stdout}")


def make(path, version):
    venv.create(path, clear=True, with_pip=True)
    install(path / "bin/python", *PACKAGES[version], constrained=version == FIRST or TRIED == LATER)
    (path / "complete").touch()
    return path / "bin/python"
