# SPDX-License-Identifier: MIT
"""What the tests of TorchX's commands share."""

import harness

# How a program of a user begins, with `runner` and a job of one role.
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
# Unmounts what its input names, a line each, as the kernel writes it in mountinfo; without looking at it.
UNMOUNT = r"""while read -r one; do umount -lc "$(printf %b "${one//\\/\\0}")" 2>/dev/null; done"""


def launched(p):
    """The handle that `torchx run` printed."""
    [handle] = [line for line in p.stdout.splitlines() if line.startswith("kxfs://")]
    return handle


def ident(handle):
    return handle.rpartition("/")[2]


def job(kx, handle):
    return harness.Job(kx, ident(handle))


def error_of(p):
    """The last line of the traceback with which a command failed."""
    assert p.returncode != 0, p.stdout
    text = p.stderr[p.stderr.rindex("\ntorchx_kxfs.mount.KxfsError: "):]
    return text.partition("Error: ")[2].strip()
