# SPDX-License-Identifier: MIT
"""What a machine lacks."""

import os

import pytest

LACKS = "this machine lacks "


def need(what, there):
    """The calling test needs WHAT of the machine. Unless that is THERE, skip it, or fail it in `tests/run all`."""
    if not there:
        (pytest.fail if os.environ.get("KXFS_TEST_ALL") else pytest.skip)(LACKS + what)
