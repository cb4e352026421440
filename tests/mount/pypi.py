# SPDX-License-Identifier: MIT
"""Installs packages of PyPI into Python environments of the tests."""

import subprocess
import time

from harness import ROOT

# Packages of TorchX and others, in the versions that the tests were written with.
CONSTRAINTS = ROOT / "tests/torchx/constraints.txt"
TRIES = 3


def install(python, *packages, constrained=True):
    """Install PACKAGES for PYTHON. pip itself retries a failed connection, but not one that breaks in the middle of a
    file."""
    options = ["-q", "--retries", "8", "--timeout", "30", *(["-c", CONSTRAINTS] if constrained else [])]
    for n in range(TRIES):
        if n:
            time.sleep(5 * n)
        p = subprocess.run([python, "-m", "pip", "install", *options, *packages], stdin=subprocess.DEVNULL, check=False,
                           timeout=900, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if p.returncode == 0:
            return
    raise AssertionError(f"{packages} can't be installed from PyPI:\n{p.stdout}")
