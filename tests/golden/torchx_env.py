# SPDX-License-Identifier: MIT
"""The real TorchX 0.7.0, from PyPI, in a Python environment of its own. KXFS_TORCHX_PYTHON names a Python that
has it already."""

import os
import pathlib
import subprocess
import venv

PACKAGES = ["torchx==0.7.0", "kubernetes==31.0.0"]


def python(where):
    """A Python that has TorchX; made in the directory WHERE if there is none."""
    given = os.environ.get("KXFS_TORCHX_PYTHON")
    if given:
        return pathlib.Path(given)
    venv.create(where, with_pip=True)
    program = pathlib.Path(where) / "bin/python"
    p = subprocess.run([program, "-m", "pip", "install", "-q", *PACKAGES], stdin=subprocess.DEVNULL, check=False,
                       timeout=900, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert p.returncode == 0, f"TorchX can't be installed from PyPI:\n{p.stdout}"
    return program
