# SPDX-License-Identifier: MIT
"""The lines that a replica has printed: from `log`, from `follow`, or, if times are requested, from `stamped`."""

from __future__ import annotations

import itertools
import os
import pathlib
import select
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import BinaryIO

from torchx_kxfs.job import Job

# How much later than the line its time may arrive.
STAMP_SECONDS = 30
# How much later than its time a line may arrive.
LATE = timedelta(seconds=2)
# poll() takes no longer time than this.
POLL_SECONDS = 3600


def log_lines(job: Job, replica: pathlib.Path, since: datetime | None, until: datetime | None,
              should_tail: bool) -> Iterator[str]:
    """Yield lines with their newline: of the latest attempt, or with SHOULD_TAIL of all attempts,
    as they are printed, until the replica has finished."""
    should_tail = should_tail and job.is_listed
    if until and until.timestamp() <= time.time():
        should_tail = False  # no more lines will arrive
    if since or until:
        lines = _window(_follow_stamped(job, replica, until) if should_tail else _read(replica / "stamped"), since, until)
    else:
        lines = _read(replica / ("follow" if should_tail else "log"))
    return (line.decode("utf-8", errors="replace") for line in lines)


def _read(path: pathlib.Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        yield from file


def _window(lines: Iterator[bytes], since: datetime | None, until: datetime | None) -> Iterator[bytes]:
    """Yield those of LINES that were printed from SINCE to UNTIL, without their times."""
    first = _stamp(since) if since else b""
    last = _stamp(until) if until else b"~"
    for line in lines:
        stamp, _, text = line.partition(b" ")
        if stamp > last:
            return
        if stamp >= first:
            yield text


def _stamp(when: datetime) -> bytes:
    """Return a time in the mount's format, which can be compared as text. A time without a zone is local."""
    return when.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ").encode()


def _follow_stamped(job: Job, replica: pathlib.Path, until: datetime | None) -> Iterator[bytes]:
    """Yield the replica's lines, with their times, as they arrive. They are in the job's `stamped`,
    mixed with those of the other replicas. The job's `follow` has the same order; it shows when
    there are more lines, and ends after the last one. End soon after UNTIL, also if the replica
    prints nothing more."""
    role, _, k = replica.name.rpartition("-")
    begin = f"{role}/{k} ".encode()
    end = until.timestamp() + LATE.total_seconds() if until else None
    last = _stamp(until + LATE) if until and until.year < 9999 else b"~"
    with open(job.path / "follow", "rb") as follow, open(job.path / "stamped", "rb") as stamped:
        arrived = (_next_line(stamped) for _ in _arriving(follow.fileno(), end))
        for raw in itertools.chain(arrived, stamped):  # at END, `follow` may not have shown all lines that exist
            stamp, _, line = raw.partition(b" ")
            if stamp > last:
                return
            if line.startswith(begin):
                yield stamp + b" " + line[len(begin):]


def _arriving(fd: int, end: float | None) -> Iterator[bytes]:
    """Yield the lines of FD, without their newlines, as they arrive. At END, yield only those that
    are already there."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    rest = b""
    while True:
        left = POLL_SECONDS if end is None else min(max(0.0, end - time.time()), POLL_SECONDS)
        if not poll.poll(left * 1000):
            if left < POLL_SECONDS:
                break
            continue
        data = os.read(fd, 1 << 16)
        *lines, rest = (rest + data).split(b"\n")
        yield from lines
        if not data:
            break
    if rest:
        yield rest


def _next_line(stamped: BinaryIO) -> bytes:
    line = stamped.readline()
    end = time.monotonic() + STAMP_SECONDS
    while not line.endswith(b"\n") and time.monotonic() < end:
        time.sleep(0.05)
        line += stamped.readline()
    return line
