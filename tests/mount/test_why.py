# SPDX-License-Identifier: MIT
"""What `why` advises about a local program that can't be started."""

import harness
import pytest


@pytest.mark.parametrize("role, hint", [
    ({"entrypoint": "sh", "args": ["x" * 200000]},
     "Argument list too long. The args and env of role main are longer than the system takes: put what is long into a "
     "file."),
    ({"entrypoint": "python3 train.py"},
     "Check the entrypoint of role main: it is one program, and what follows it belongs into args."),
    ({"entrypoint": "nosuchprogram"},
     "Check the entrypoint of role main: it must be a program in PATH or the path of an executable file."),
])
def test_start_error(kx, role, hint):
    job = kx.submit(harness.app("", roles=[{"name": "main", "image": "none", **role}]))
    job.finish("FAILED")
    assert hint in job.read("why")
