# SPDX-License-Identifier: MIT
"""The records of jobs in a state directory (spec/record/head.h), for tests that read or change them."""

import json

import harness

LINE = 74  # bytes of the first line


def files(kx):
    """Return the paths of all records."""
    path = kx.state / "jobs"
    return [p for p in path.iterdir() if not p.name.startswith(".") and p.is_file()] if path.exists() else []


def fnv(data, value=14695981039346656037):
    for byte in data:
        value = (value ^ byte) * 1099511628211 & (1 << 64) - 1
    return value


def head_of(path):
    data = path.read_bytes()
    return json.loads(data[LINE:LINE + int(data[13:21])])


def of(kx, job):
    """Return the record of the job JOB."""
    return harness.record(kx.state, job)


def snapshot_of(path):
    """Return the snapshot of the job in the record PATH, or {} if there is none yet."""
    return head_of(path).get("snapshot", {}) if path.exists() else {}


def is_history(path):
    """True if the job of the record PATH has left jobs/."""
    return path.read_bytes()[11:12] == b"h"


def sealed(head, document=b"", letter=b"j"):
    """Return the bytes of a record with the head HEAD and the document DOCUMENT."""
    text = json.dumps(head, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    lengths = b"%08d %08d %08d " % (len(text), len(document), 0)
    return b"kxfs job 1 %s %s%016x %016x\n" % (letter, lengths, fnv(lengths + text), fnv(document)) + text + document


def document_of(path):
    data = path.read_bytes()
    return data[LINE + int(data[13:21]):][:int(data[22:30])]


def add(kx, head, document):
    """Add the record of a job to KX's state directory."""
    path = kx.state / "jobs" / head["job"]["key"]
    path.write_bytes(sealed(head, document))
    return path


def copy_of(head, key, ident):
    """Return a copy of HEAD for another local job, with the UUID KEY and the id IDENT."""
    return head | {"job": head["job"] | {"key": key, "id": ident},
                   "snapshot": head["snapshot"] | {"id": ident, "uid": key, "submission": key}}


def rewrite(path, head):
    """Replace the head of the record PATH by HEAD."""
    data = path.read_bytes()
    rest = data[LINE + int(data[13:21]):]
    text = json.dumps(head, separators=(",", ":")).encode() + b"\n"
    lengths = b"%08d" % len(text) + data[21:40]
    path.write_bytes(data[:13] + lengths + b"%016x" % fnv(lengths + text) + data[56:LINE] + text + rest)
