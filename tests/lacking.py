# SPDX-License-Identifier: MIT
"""Requirements of tests that a machine may not meet."""

import os

import pytest

LACKS = "this machine lacks "


def need(what, there):
    """Skip the calling test unless THERE: it needs WHAT of the machine. In `tests/run all`, fail it
    instead."""
    if not there:
        (pytest.fail if os.environ.get("KXFS_TEST_ALL") else pytest.skip)(LACKS + what)
