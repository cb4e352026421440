# SPDX-License-Identifier: MIT
"""Rule T7 by what the build has made: which files call the disk, and from where. Only the pool waits for a disk: what
ends in one of these calls is a piece of work (`.run`, loop_work), a lookup of something of a user's, or stands below
with the reason why it may."""

import concurrent.futures
import functools
import re

import pytest
from architecture import objects
from files import ROOT, name_of
from test_architecture import compile_arguments

TOPS = ("backend/", "fs/")

# What may wait for a disk, as the C library names it.
CALLS = set("""open openat creat fopen opendir fdopendir readdir getdents64 scandir scandirat nftw realpath readlink
    readlinkat access faccessat stat lstat fstat fstatat statvfs fstatvfs pread pwrite truncate ftruncate fallocate
    posix_fallocate fsync fdatasync sync_file_range rename renameat renameat2 link linkat symlink symlinkat unlink
    unlinkat mkdir mkdirat rmdir chmod fchmod fchmodat chown fchown fchownat utimensat futimens flock mkostemp mkdtemp
    bind connect getpwuid_r getpwnam_r""".split())

# Files that call them for the state directory, beside its owner.
STATE = {
    "backend/base/disk.c": "the owner",
    "backend/backend.c": "whether a text of a job is readable",
    "backend/local/local.c": "the directory of the jobs, when the mount is made",
    "backend/local/record_file.c": "the records of local jobs",
    "backend/local/saved.c": "the folders of local jobs, at the start",
    "backend/local/submit.c": "the folder of a new local job; and where it is to run, a user's path",
    "backend/local/task.c": "the sockets of helpers, which are files too",
    "backend/output/output.c": "whether the directory of the jobs can be used, when the mount is made",
    "fs/mount/state.c": "finding, locking and making the state directory, before there is a pool",
    "fs/tree/place.c": "whether the state directory is still there",
    "fs/vfs/ops.c": "how much room there is",
}
# Files that call them for something else.
OTHERS = {
    "backend/base/file.c": "users' own files: kubeconfig, tokens",
    "backend/base/process.c": "/proc",
    "backend/client/curl_loop.c": "/proc",
    "backend/client/kubeconfig.c": "where the kubeconfig is, at the start and on the pool",
    "backend/local/helper.c": "another process, which has no loop",
    "fs/cli/dry_run.c": "a command that prints a manifest, and ends",
    "fs/mount/daemon.c": "/dev/null, before the fork",
    "fs/mount/mountinfo.c": "/proc",
    "fs/mount/mountpoint.c": "the mount point, before the mount is up and when it is away",
    "fs/mount/session.c": "/proc",
    "fs/submit/launch.c": "the name of a user, as a lookup",
    "fs/submit/writer.c": "/proc",
}

START = "the thread that starts and ends the mount, which serves nobody then"
SERVE = "a handler of FUSE: when a disk stops its thread, another goes on (fs/vfs/serve.h)"
# From where they are called, but for work of the pool.
ENTRIES = {
    "backend/kube/kube.c": [(START, "kube_init kube_key"), (SERVE, "kube_text")],
    "backend/local/local.c": [(START, "local_init"), (SERVE, "local_text")],
    "backend/local/saved.c": [("what it opens is below /proc", "recover_done")],
    "backend/local/submit.c": [("work of the pool, which submit_start begins", "submit_work")],
    "fs/mount/main.c": [(START, "main")],
    "fs/mount/run.c": [(START, "clear")],
    "fs/tree/control.c": [(SERVE, "control_log")],
    "fs/tree/job_live.c": [(SERVE, "job_follow_open")],
    "fs/tree/job_text.c": [(SERVE, "job_appdef_getattr job_manifest_getattr")],
    "fs/tree/log_file.c": [(SERVE, "log_file_getattr log_file_open log_file_read")],
    "fs/vfs/ops.c": [(SERVE, "ops_statfs")],
}


def symbol(name):
    """As the source calls it: the C library's headers choose 64 bits, and checked variants."""
    name = re.sub(r"^__(\w+?)(64)?_(2|chk)$", r"\1", name)
    return re.sub(r"(?<=[a-z])64$", "", name) if name != "getdents64" else name


def test_who_calls_the_disk():
    """Each file that calls one of these is listed, and no other."""
    found = {obj.source for obj in objects() if obj.source.startswith(TOPS)
             and {symbol(name) for name in obj.uses} & CALLS}
    assert found == STATE.keys() | OTHERS.keys()


# --- from where ----------------------------------------------------------------------------------------------------


def functions_of(row):
    """What each function of a source calls, and whose address it takes; None: outside of functions."""
    from clang.cindex import CursorKind, Index

    source, arguments = row
    found = {}

    def plain(cursor):
        while cursor is not None and cursor.kind in (CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN_EXPR):
            cursor = next(iter(cursor.get_children()), None)
        return cursor

    def walk(cursor, calls, taken):
        if cursor.kind == CursorKind.DECL_REF_EXPR and cursor.referenced and \
                cursor.referenced.kind == CursorKind.FUNCTION_DECL:
            taken.add(cursor.referenced.spelling)
        children = list(cursor.get_children())
        if cursor.kind == CursorKind.CALL_EXPR and children:
            callee = plain(children[0])
            if callee is not None and callee.kind == CursorKind.DECL_REF_EXPR and \
                    callee.referenced.kind == CursorKind.FUNCTION_DECL:
                calls.add(callee.referenced.spelling)
                children = children[1:]
        for child in children:
            walk(child, calls, taken)

    for cursor in Index.create().parse(str(source), args=arguments).cursor.get_children():
        if not cursor.location.file:
            continue
        if cursor.kind == CursorKind.FUNCTION_DECL and cursor.is_definition():
            static = cursor.storage_class.name == "STATIC"
            calls, taken = set(), set()
            walk(cursor, calls, taken)
            found[cursor.spelling] = (static, calls, taken)
        elif cursor.kind == CursorKind.VAR_DECL and cursor.location.file.name == str(source):
            _, calls, taken = found.setdefault(None, (True, set(), set()))
            walk(cursor, calls, taken)
    return name_of(source), found


def arguments_of(text, name):
    """The arguments of each call of NAME in TEXT."""
    for match in re.finditer(rf"\b{name}\(", text):
        depth, at, found = 0, match.end(), [""]
        while depth >= 0 and at < len(text):
            char = text[at]
            depth += (char in "({[") - (char in ")}]")
            if char == "," and depth == 0:
                found.append("")
            elif depth >= 0:
                found[-1] += char
            at += 1
        yield found


class Graph:
    """All functions of the program, as (file, name)."""

    def __init__(self):
        rows = [(s, a) for s, a in compile_arguments().items()
                if s.suffix == ".c" and name_of(s).startswith((*TOPS, "spec/"))]
        with concurrent.futures.ProcessPoolExecutor(2) as pool:
            files = dict(pool.map(functions_of, rows, chunksize=4))
        self.nodes = {(file, name): row for file, rows in files.items() for name, row in rows.items()}
        self.shared = {name: (file, name) for (file, name), row in self.nodes.items() if not row[0]}
        self.callers, self.takers = {}, {}
        for node, (_, calls, taken) in self.nodes.items():
            for names, table in ((calls, self.callers), (taken, self.takers)):
                for name in names:
                    table.setdefault(self.find(node[0], name), set()).add(node)
        self.pool = set()
        for file in files:
            text = (ROOT / file).read_text()
            given = re.findall(r"\.(?:run|look) = ([^,}]*)", text)
            given += [a[1] for a in arguments_of(text, "loop_work") if len(a) > 3]
            given += [a[0] for a in arguments_of(text, "thread_start")]
            self.pool |= {self.find(file, word) for words in given for word in re.findall(r"\w+", words)}

    def find(self, file, name):
        return (file, name) if (file, name) in self.nodes else self.shared.get(name)

    def entries(self):
        """Where that begins which ends in a call, and is no work of the pool: {file: names}."""
        waits = {node for node, (_, calls, _) in self.nodes.items() if calls & CALLS and node[0] not in OTHERS}
        todo = list(waits)
        while todo:
            node = todo.pop()
            more = set() if node in self.pool else self.callers.get(node, set()) - waits
            waits |= more
            todo += more
        found = {}
        for file, name in waits - self.pool:
            takers = self.takers.get((file, name), set())
            begins = takers - waits - self.pool or not takers and not self.callers.get((file, name))
            if begins and not (file == "backend/base/disk.c"):
                found.setdefault(file, set()).add(name)
        return found


@functools.cache
def graph():
    return Graph()


def test_only_the_pool_waits_for_the_disk():
    found = {(file, name) for file, names in graph().entries().items() for name in names}
    listed = {(file, name) for file, rows in ENTRIES.items() for _, names in rows for name in names.split()}
    assert not found - listed, "these wait for the disk, and are not run by the pool: " \
        + ", ".join(f"{file}: {name}" for file, name in sorted(found - listed))
    assert not listed - found, f"these need not be listed any more: {sorted(listed - found)}"


@pytest.mark.parametrize("call", ["pread", "fsync"])
def test_a_call_on_the_loop_is_found(call):
    """The search itself: were index_done to call the disk, which the loop runs, that would be found."""
    found = Graph.__new__(Graph)
    found.__dict__.update(graph().__dict__)
    place = ("backend/output/index.c", "index_done")
    static, calls, taken = found.nodes[place]
    found.nodes = {**found.nodes, place: (static, calls | {call}, taken)}
    assert "index_done" in found.entries()["backend/output/index.c"]
