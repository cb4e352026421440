# SPDX-License-Identifier: MIT
"""The real TorchX, from PyPI, in a Python environment of its own: 0.7.0, which manifests equal, and a later version,
which has a JSON output. KXFS_TORCHX_PYTHON and KXFS_TORCHX_LATER_PYTHON name a Python that has it already;
KXFS_TORCHX_LATER is the version of torchx-nightly that is installed, "newest" for the newest; KXFS_TORCHX_DIR a
directory in which the environments of several runs are."""

import fcntl
import hashlib
import os
import pathlib
import sys
import venv

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "mount"))

import pypi  # noqa: E402

FIRST = "0.7.0"
LATER = "2026.10.26"  # of torchx-nightly: the one whose output is recorded
TRIED = os.environ.get("KXFS_TORCHX_LATER", LATER)
KUBERNETES = "kubernetes==31.0.0"
PACKAGES = {FIRST: [f"torchx=={FIRST}", KUBERNETES],
            LATER: ["torchx-nightly" if TRIED == "newest" else f"torchx-nightly=={TRIED}", KUBERNETES,
                    "hydra-core==1.3.2"]}
PYTHONS = {FIRST: "KXFS_TORCHX_PYTHON", LATER: "KXFS_TORCHX_LATER_PYTHON"}


def python(where, version=FIRST):
    """A Python that has this TorchX; made in the directory WHERE if there is none."""
    given = os.environ.get(PYTHONS[version])
    if given:
        return pathlib.Path(given)
    shared = os.environ.get("KXFS_TORCHX_DIR")
    if not shared:
        return make(pathlib.Path(where), version)
    wanted = hashlib.sha256(f"{PACKAGES[version]} {pypi.CONSTRAINTS.read_text()}".encode()).hexdigest()
    path = pathlib.Path(shared, f"{version}-{wanted[:8]}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{path}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return path / "bin/python" if (path / "complete").exists() else make(path, version)


def make(path, version):
    venv.create(path, clear=True, with_pip=True)
    pypi.install(path / "bin/python", *PACKAGES[version], constrained=version == FIRST or TRIED == LATER)
    (path / "complete").touch()
    return path / "bin/python"
