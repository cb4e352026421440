# SPDX-License-Identifier: MIT
"""Common code of the tests of submit/: documents, and what was launched from them."""

import os

import harness

GOOD = harness.app("true") + "\n"
BAD = '{"name": "app", "nonsense": 1}\n'


def launched(kx):
    """Return the ids of all existing jobs."""
    return {*kx.ls("jobs"), *kx.history()}


def job_of(kx, name):
    """Return the id of the job to which NAME.job points, or None."""
    try:
        return os.path.basename(os.readlink(kx / f"submit/{name}.job"))
    except FileNotFoundError:
        return None


def error_of(kx, name):
    try:
        return kx.read(f"submit/{name}.error")
    except FileNotFoundError:
        return None


def launched_once(kx, name, before=()):
    """Check that exactly one job was launched since BEFORE: the job of NAME, which has no error."""
    harness.wait_for(lambda: job_of(kx, name) not in (None, *before) or error_of(kx, name),
                     what=f"the verdict on {name}")
    assert error_of(kx, name) is None
    assert launched(kx) - set(before) == {job_of(kx, name)}


def refused(kx, name, text=""):
    """Check that no job was launched, and that NAME.error contains TEXT."""
    harness.wait_for(lambda: error_of(kx, name), what=f"{name}.error")
    assert text in error_of(kx, name)
    assert not launched(kx)
    assert job_of(kx, name) is None


def put(kx, name, text):
    """Write TEXT to NAME as cp does. Return the name of the errno, or "" on success."""
    return harness.err_of(kx.write, f"submit/{name}", text)
