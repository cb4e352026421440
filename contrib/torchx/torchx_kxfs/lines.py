# SPDX-License-Identifier: MIT
"""The lines that a replica has printed: from `log`, from `follow`, or, where times are asked for, from `stamped`."""

from __future__ import annotations

import os
import pathlib
import time
from collections.abc import Iterator
from datetime import datetime, timezone

from torchx_kxfs.job import FINAL, Job

POLL_SECONDS = 0.5


def log_lines(job: Job, replica: pathlib.Path, since: datetime | None, until: datetime | None,
              should_tail: bool) -> Iterator[str]:
    """Lines with their newline. With SHOULD_TAIL they come as they are printed, until there can be no more."""
    should_tail = should_tail and job.is_listed
    if since or until:
        lines = _window(_growing(replica, until) if should_tail else _read(replica / "stamped"), since, until)
    else:
        lines = _read(replica / ("follow" if should_tail else "log"))
    return (line.decode("utf-8", errors="replace") for line in lines)


def _read(path: pathlib.Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        yield from file


def _window(lines: Iterator[bytes], since: datetime | None, until: datetime | None) -> Iterator[bytes]:
    """Those of LINES that were printed from SINCE to UNTIL, without their times."""
    first = _stamp(since) if since else b""
    last = _stamp(until) if until else b"~"
    for line in lines:
        stamp, _, text = line.partition(b" ")
        if stamp > last:
            return
        if stamp >= first:
            yield text


def _stamp(when: datetime) -> bytes:
    """As the mount writes times, which can be compared as text. A time without a zone is local."""
    return when.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ").encode()


def _growing(replica: pathlib.Path, until: datetime | None) -> Iterator[bytes]:
    """The lines of `stamped` as they come, of each attempt that begins, until the job has finished or UNTIL is over."""
    path = replica / "stamped"
    over = False
    while not over:
        with open(path, "rb") as file:
            rest = b""
            while True:
                # Asked before the last read, so that what came before the end is read.
                over = _has_ended(replica, until)
                left = over or _is_another(path, file.fileno())
                time.sleep(POLL_SECONDS)
                *lines, rest = (rest + file.read()).split(b"\n")
                yield from (line + b"\n" for line in lines)
                if left:
                    break
            if rest:
                yield rest


def _has_ended(replica: pathlib.Path, until: datetime | None) -> bool:
    if until and time.time() > until.timestamp():
        return True
    try:
        return (replica.parent / "state").read_text().strip() in FINAL
    except FileNotFoundError:  # the job has left jobs/
        return True


def _is_another(path: pathlib.Path, fd: int) -> bool:
    """Has PATH become the log of another attempt than the one that is open?"""
    try:
        return os.stat(path).st_ino != os.fstat(fd).st_ino
    except FileNotFoundError:
        return True
