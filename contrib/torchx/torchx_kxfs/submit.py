# SPDX-License-Identifier: MIT
"""Turns a document into a job, exactly once. The document is written to submit/ with a unique name,
and the result appears beside it, as NAME.job or NAME.error.

The mount launches the file when it is closed. Whatever happens to this process afterwards, the job
is launched at most once, and NAME.job names it. If the close is interrupted, only the waiting ends,
not the request."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import pathlib
import re
import secrets
import time

from torchx_kxfs.mount import KxfsError, Mount

# If a reply was lost, the mount itself queries the cluster for at most ten minutes.
VERDICT_SECONDS = 660
# If a close fails with one of these, the result is still open.
UNDECIDED = (errno.ETIMEDOUT, errno.EINTR)

# The line that names the job in a manifest, and in the manifest.yaml of a local job.
_ID = re.compile(r"^(?:id|metadata:\n  name): (\S+-\w+)$", re.MULTILINE)

logger = logging.getLogger(__name__)


def submit(mount: Mount, name: str, document: str) -> str:
    """Launch DOCUMENT as submit/NAME. If that file already exists, from a call that did not see the
    result, find the result. Return the id of the job, or raise KxfsError with the reason of a
    refusal."""
    path = mount.path / "submit" / name
    try:
        error = _write(path, document)
        if error and error.errno == errno.EEXIST:
            error = None
        ident = _verdict(path, error)
    except KeyboardInterrupt:
        logger.warning("Interrupted while the job was being submitted. If it runs, the link %s.job names it; if it was "
                       "refused, %s.error has the reason.", path, path)
        raise
    _remove(path, ".job")
    return ident


def dry_run(mount: Mount, name: str, document: str) -> str:
    """Return the manifest that DOCUMENT would make, as YAML, without launching it. SUFFIX replaces
    the end of the id, which is random for each launch."""
    path = mount.path / "dryrun" / name
    try:
        error = _write(path, document)
        if error:
            raise KxfsError(_reason(path) or f"{path}: {error.strerror}") from None
        text = path.read_text(encoding="utf-8")
    finally:
        _remove(path, ".error")
    ident = _ID.search(text)
    return text.replace(ident[1], ident[1].rpartition("-")[0] + "-SUFFIX") if ident else text


def new_name() -> str:
    """Return a unique file name."""
    return f"torchx-{secrets.token_hex(16)}.json"


def _write(path: pathlib.Path, document: str) -> OSError | None:
    """Write the file and close it; return the error of the close."""
    data = document.encode("utf-8")
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        return error
    try:
        while data:
            data = data[os.write(fd, data):]
    except OSError as error:
        _abandon(fd)
        return error
    except BaseException:
        _abandon(fd)
        _remove(path)
        raise
    try:
        os.close(fd)
    except OSError as error:
        return error
    return None


def _abandon(fd: int) -> None:
    """Close an incomplete file. It is truncated first, because an empty file submits nothing."""
    with contextlib.suppress(OSError):
        os.ftruncate(fd, 0)
    with contextlib.suppress(OSError):
        os.close(fd)


def _verdict(path: pathlib.Path, error: OSError | None) -> str:
    """Return the id of the job that the file became. ERROR is the error of the file's close."""
    end = time.monotonic() + VERDICT_SECONDS
    reported = False
    while True:
        with contextlib.suppress(FileNotFoundError):
            return os.path.basename(os.readlink(f"{path}.job"))
        reason = _reason(path)
        if reason or (error and error.errno not in UNDECIDED):
            _remove(path, ".error")
            raise KxfsError(reason or f"{path}: {error and error.strerror}") from None
        if time.monotonic() > end:
            raise KxfsError(f"kxfs does not know yet whether the job was launched. The link {path}.job will name it, or "
                            f"{path}.error will say why it was not; do not submit it again before then.") from None
        if not reported:
            logger.info("waiting for the cluster's answer (%s.job or %s.error)", path, path)
            reported = True
        time.sleep(0.2)


def _reason(path: pathlib.Path) -> str:
    try:
        return path.with_name(f"{path.name}.error").read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""


def _remove(path: pathlib.Path, *verdicts: str) -> None:
    """Remove the file, which the mount has already read. It would only fill the directory."""
    for name in (path.name, *(path.name + verdict for verdict in verdicts)):
        with contextlib.suppress(OSError):
            path.with_name(name).unlink()
