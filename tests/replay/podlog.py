# SPDX-License-Identifier: MIT
"""Output of containers, as a kubelet stores and serves it.

The runtime writes one entry for each complete line, for each 16 KiB without a newline, and for the rest at the end.
A request returns whole entries, with a time before each line. Rotation removes entries, so later requests don't get
them. If the kubelet does not notice a rotation, streams that follow the log get nothing more."""

import datetime
import functools
import re
import threading
import time

PIECE = 16 * 1024


class Log:
    """The output of one run of a container. Any thread may append to it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.entries = []  # (time in ns, bytes)
        self.first = 0  # entries before this index were rotated away
        self.ended = False
        self.held = None  # the kubelet does not show entries from this index on, or None
        # The K-th element is for streams that began after K unnoticed rotations: they get no
        # entries from this index on.
        self.lost = []
        self.listeners = []
        self._rest = b""

    def append(self, data, at=None):
        """Let the container print DATA at the time AT, in ns since 1970. AT may be equal to or before the last time.
        The default is the current time, but always after the last time."""
        data = data.encode() if isinstance(data, str) else data
        with self.lock:
            assert not self.ended, "a container that has ended prints nothing"
            data = self._rest + data
            begin = 0
            while True:
                end = data.find(b"\n", begin, begin + PIECE) + 1
                if not end and len(data) - begin >= PIECE:
                    end = begin + PIECE
                if not end:
                    break
                self._entry(data[begin:end], at)
                begin = end
            self._rest = data[begin:]
        self._tell()

    def end(self):
        """End the container."""
        with self.lock:
            if self._rest:
                self._entry(self._rest, None)
            self._rest = b""
            self.ended = True
        self._tell()

    def hold(self):
        """Let the kubelet lag behind: it shows neither later output nor the end until go_on()."""
        with self.lock:
            self.held = len(self.entries)

    def go_on(self):
        with self.lock:
            self.held = None
        self._tell()

    def rotate(self, keep=0):
        """Make the current output unreadable for later requests, except its last KEEP entries."""
        with self.lock:
            self.first = max(self.first, len(self.entries) - keep)

    def lose(self):
        """Rotate the log without the kubelet noticing: streams that follow it get nothing more until its end."""
        self.rotate()
        with self.lock:
            self.lost.append(len(self.entries))

    def data(self):
        """Return all output ever printed, in complete entries."""
        with self.lock:
            return b"".join(text for _, text in self.entries)

    def _entry(self, text, at):
        if at is None:
            at = max(time.time_ns(), self.entries[-1][0] + 1 if self.entries else 0)
        self.entries.append((at, text))

    def _tell(self):
        for listener in list(self.listeners):
            listener()


@functools.lru_cache
def second(seconds):
    return f"{datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc):%Y-%m-%dT%H:%M:%S}"


def stamp(at):
    """Return AT, in ns since 1970, in the runtime's format: RFC 3339 with nine digits."""
    seconds, ns = divmod(at, 10**9)
    return f"{second(seconds)}.{ns:09d}Z"


def parse_since(text):
    """Return `sinceTime` in ns since 1970, cut to whole seconds as the API server does. Raise ValueError if it is
    invalid."""
    match = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)", text)
    if not match:
        raise ValueError(f"parsing time {text!r}")
    zone = "+00:00" if match[3] == "Z" else match[3]
    return int(datetime.datetime.fromisoformat(match[1] + zone).timestamp()) * 10**9


class Reader:
    """One request for a log. It returns the log in chunks."""

    def __init__(self, log, timestamps=False, since=None, tail=None, limit=None):
        self.log = log
        self.timestamps = timestamps
        self.since = since or 0
        self.left = limit
        self.line_start = True
        with log.lock:
            self.next = log.first
            self.lost = len(log.lost)
            if tail is not None:
                self.next = max(self.next, len(log.entries) - tail)

    def read(self):
        """Return (the available bytes, true if they are the last)."""
        with self.log.lock:
            entries = self.log.entries[self.next:(self.log.lost[self.lost:] or [self.log.held])[0]]
            self.next += len(entries)
            ended = self.log.ended and self.log.held is None
        out = b"".join(self._text(at, text) for at, text in entries)
        if self.left is not None:
            out = out[:self.left]
            self.left -= len(out)
            ended = ended or not self.left
        return out, ended

    def _text(self, at, text):
        head = f"{stamp(at)} ".encode() if self.timestamps and self.line_start else b""
        self.line_start = text.endswith(b"\n")  # even for an entry that is not shown
        return head + text if at >= self.since else b""
