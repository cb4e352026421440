# SPDX-License-Identifier: MIT
"""Finds the mounts of kxfs, and the one to use."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import yaml

VARIABLE = "KXFS_MOUNT"
MOUNTINFO = "/proc/self/mountinfo"
# Errors of requests after kxfs has ended, or while it was ending.
ENDED = (errno.ENOTCONN, errno.ECONNABORTED)


class KxfsError(RuntimeError):
    """A message for the user: the error, and the remedy."""


@dataclasses.dataclass(frozen=True)
class Mount:
    """A mount that responds."""

    path: pathlib.Path
    backend: str
    pid: int

    @property
    def is_local(self) -> bool:
        """True if jobs run as processes of this machine."""
        return self.backend == "local"

    def environment(self) -> dict[str, str]:
        """Return the default environment of the mount's jobs, which is that of kxfs. Empty if it
        can't be read."""
        try:
            data = pathlib.Path(f"/proc/{self.pid}/environ").read_bytes()
        except OSError:
            return {}
        pairs = (entry.partition("=") for entry in os.fsdecode(data).split("\0"))
        return {name: value for name, _, value in pairs if name}

    def statuses(self) -> list[dict[str, Any]]:
        """Return status.json of each job in jobs/."""
        lines = (self.path / "list.jsonl").read_text(encoding="utf-8").split("\n")
        return [json.loads(line) for line in lines if line]


def open_mount(path: str | os.PathLike[str]) -> Mount:
    """Return the mount at PATH, or None."""
    top = pathlib.Path(os.path.abspath(os.path.expanduser(path)))
    try:
        info = yaml.safe_load((top / ".kxfs/info").read_text(encoding="utf-8"))
    except OSError as error:
        if error.errno in ENDED:
            raise KxfsError(f"kxfs has ended and left {top} behind: mount again with `kxfs SOURCE {top}`") from error
        if isinstance(error, (FileNotFoundError, NotADirectoryError)):
            raise KxfsError(f"nothing of kxfs is mounted at {top}: mount it with `kxfs SOURCE {top}`") from error
        raise KxfsError(f"{top} can't be read: {error.strerror}") from error
    return Mount(top, info["backend"], info["pid"])


def mount_points() -> list[str]:
    """Return the mounts of this user. If there are none, return other users' mounts that allow all
    users."""
    own, others = [], []
    with open(MOUNTINFO, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            left, _, right = line.partition(" - ")
            kind, _, options = right.split(" ", 2)
            if kind != "fuse.kxfs":
                continue
            path = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), left.split(" ")[4])
            words = options.strip().split(",")
            if f"user_id={os.getuid()}" in words:
                own.append(path)
            elif "allow_other" in words:
                others.append(path)
    return list(dict.fromkeys(own or others))


def all_mounts(ended: list[KxfsError] | None = None) -> Iterator[Mount]:
    """Yield the mounts that respond. If none does, raise an error, because a dead mount has no jobs
    to show. Add the errors of the others to ENDED."""
    found = False
    for path in mount_points():
        try:
            yield open_mount(path)
            found = True
        except KxfsError as error:
            if ended is not None:
                ended.append(error)
    if not found:
        if ended:
            raise ended[0]
        raise KxfsError("nothing of kxfs is mounted: mount it with `kxfs SOURCE DIRECTORY`, where SOURCE is local: or "
                        "names a namespace of a cluster")


def named_mount(given: str | None) -> Mount | None:
    """Return the mount at GIVEN, else that of $KXFS_MOUNT; None if neither is set."""
    path = given or os.environ.get(VARIABLE)
    return open_mount(path) if path else None


def the_mount(given: str | None) -> Mount:
    """Return the named mount, else the only one."""
    named = named_mount(given)
    if named:
        return named
    first, *more = all_mounts()
    if more:
        names = ", ".join(str(mount.path) for mount in [first, *more])
        raise KxfsError(f"there are several mounts of kxfs ({names}): say which one is meant with -cfg mount=DIRECTORY, "
                        f"in .torchxconfig, or by the variable {VARIABLE}")
    return first
