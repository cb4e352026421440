# SPDX-License-Identifier: MIT
"""The real TorchX, from PyPI, in a Python environment of its own: 0.7.0, which manifests equal, and a later version,
which has a JSON output. KXFS_TORCHX_PYTHON and KXFS_TORCHX_LATER_PYTHON name a Python that has it already;
KXFS_TORCHX_LATER is the version of torchx-nightly that is installed, "newest" for the newest."""

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
    venv.create(where, with_pip=True)
    program = pathlib.Path(where) / "bin/python"
    pypi.install(program, *PACKAGES[version], constrained=version == FIRST or TRIED == LATER)
    return program
