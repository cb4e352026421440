# SPDX-License-Identifier: MIT
"""Which files access the disk, and what the simulator replaces, checked on the build."""

import collections
import functools
import re

import pytest
from test_architecture import objects
from calls import all_functions
from files import ROOT

# --- Rule T7: the disk ------------------------------------------------------------------------
# Rule T7, checked on the build: which files call the disk, and from where. Only the pool waits for
# a disk. So each such call must come from a work item (`.run`, loop_work, loop_work_of_many) or
# from a lookup of a user's file, or be listed below with the reason.

TOPS = ("backend/", "fs/")

# Functions of the C library that may wait for a disk.
CALLS = set("""open openat creat fopen opendir fdopendir readdir getdents64 scandir scandirat nftw realpath readlink
    readlinkat access faccessat stat lstat fstat fstatat statvfs fstatvfs pread pwrite truncate ftruncate fallocate
    posix_fallocate fsync fdatasync sync_file_range rename renameat renameat2 link linkat symlink symlinkat unlink
    unlinkat mkdir mkdirat rmdir chmod fchmod fchmodat chown fchown fchownat utimensat futimens flock mkostemp mkdtemp
    bind connect getpwuid_r getpwnam_r""".split())

# Files that call them for the state directory, with the reason.
STATE = {
    "backend/base/disk.c": "the owner",
    "backend/local/helper.c": "a helper's lock, in a process without a loop",
    "backend/local/request.c": "the working directory of a local job, which is a user's path",
    "backend/local/task.c": "the sockets of helpers, which are files too",
    "fs/mount/state.c": "finds, locks and makes the state directory, before there is a pool",
    "fs/vfs/ops.c": "the free space",
}
# Files that call them for something else.
OTHERS = {
    "backend/base/file.c": "users' own files: kubeconfig, tokens",
    "backend/base/process.c": "/proc; /dev/null in a process without a loop",
    "backend/client/kubeconfig.c": "finds the kubeconfig, at the start and on the pool",
    "backend/local/descent.c": "/proc, in a helper",
    "backend/local/local.c": "/proc, when the mount is made",
    "backend/local/guard.c": "a process without a loop",
    "backend/local/helper_main.c": "/dev/null, in a process without a loop",
    "fs/cli/commands.c": "commands other than mount; kind files, before the fork",
    "fs/mount/daemon.c": "/dev/null, before the fork",
    "fs/mount/doctor.c": "/proc, in a command without a mount",
    "fs/mount/mountpoint.c": "/proc; the mount point, before the mount is up and after it has ended",
    "fs/mount/session.c": "/proc",
    "fs/submit/writer.c": "/proc",
}

START = "at the start and the end of a mount, when this thread serves no requests"
SERVE = "a FUSE handler: if the disk blocks its thread, another thread serves requests (fs/vfs/serve.h)"
# Where such calls start, apart from work of the pool.
ENTRIES = {
    "backend/kube/kube.c": [(START, "kube_init kube_key"), (SERVE, "kube_text")],
    "backend/local/local.c": [(START, "local_init"), (SERVE, "local_text")],
    "fs/mount/main.c": [(START, "main")],
    "fs/tree/control.c": [(SERVE, "control_log")],
    "fs/tree/follow.c": [(SERVE, "follow_open")],
    "fs/tree/job_text.c": [(SERVE, "job_backend_getattr job_backend_text")],
    "fs/tree/log_file.c": [(SERVE, "log_file_getattr log_file_open log_file_read")],
    "fs/vfs/ops.c": [(SERVE, "ops_statfs")],
}


def symbol(name):
    """Return the name as in the source. The C library's headers substitute 64-bit and checked
    variants."""
    name = re.sub(r"^__(\w+?)(64)?_(2|chk)$", r"\1", name)
    return re.sub(r"(?<=[a-z])64$", "", name) if name != "getdents64" else name


def test_who_calls_the_disk():
    """The files that call one of these functions are exactly those listed."""
    found = {obj.source for obj in objects() if obj.source.startswith(TOPS)
             and {symbol(name) for name in obj.uses} & CALLS}
    assert found == STATE.keys() | OTHERS.keys()


# --- From where -------------------------------------------------------------------------------


def arguments_of(text, name):
    """Yield the arguments of each call of NAME in TEXT."""
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
        files = all_functions(("spec/", *TOPS))
        self.nodes = {(file, name): fn for file, functions in files.items() for name, fn in functions.items()}
        self.shared = {name: (file, name) for (file, name), fn in self.nodes.items() if not fn.static}
        self.callers, self.takers = {}, {}
        for node, fn in self.nodes.items():
            for names, table in ((fn.calls, self.callers), (fn.taken, self.takers)):
                for name in names:
                    table.setdefault(self.find(node[0], name), set()).add(node)
        self.pool = set()
        for file in files:
            text = (ROOT / file).read_text()
            given = re.findall(r"\.(?:run|look) = ([^,}]*)", text)
            given += [a[1] for a in arguments_of(text, "loop_work(?:_of_many)?") if len(a) > 3]
            given += [a[0] for a in arguments_of(text, "thread_start")]
            self.pool |= {self.find(file, word) for words in given for word in re.findall(r"\w+", words)}

    def find(self, file, name):
        return (file, name) if (file, name) in self.nodes else self.shared.get(name)

    def entries(self):
        """Return the functions from which disk calls start and that are not work of the pool:
        {file: names}."""
        waits = {node for node, fn in self.nodes.items() if fn.calls.keys() & CALLS and node[0] not in OTHERS}
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
    """The search works: if index_done, which runs on the loop, called the disk, the search would
    find it."""
    found = Graph.__new__(Graph)
    found.__dict__.update(graph().__dict__)
    place = ("backend/output/index.c", "index_done")
    fn = found.nodes[place]
    found.nodes = {**found.nodes, place: fn._replace(calls=fn.calls + collections.Counter([call]))}
    assert "index_done" in found.entries()["backend/output/index.c"]


# --- Seams ------------------------------------------------------------------------------------
# What the simulator (tests/sim/) replaces. Only the files below read a clock, use random numbers,
# start a thread or a process, or sleep. The section above covers disk accesses.

ALL_TOPS = ("spec/", "backend/", "fs/")
SIMULATED = "tests/sim/ replaces it"
OTHER_PROCESS = "in another process, which the simulator does not run"
EARLY = "during the start, before there is a loop"

SEAMS = {
    "clock": ("clock_gettime time gettimeofday uv_hrtime uv_now uv_clock_gettime", {
        "backend/base/diag.c": SIMULATED,
        "backend/base/loop.c": SIMULATED,
        "backend/base/process.c": SIMULATED,
        "backend/base/thread.c": SIMULATED,
        "fs/vfs/park.c": SIMULATED,
        "backend/local/guard.c": OTHER_PROCESS,
    }),
    "number": ("getrandom getentropy rand random drand48 arc4random uv_random", {
        "backend/base/random.c": SIMULATED,
    }),
    "thread": ("pthread_create thrd_create uv_thread_create uv_queue_work fork vfork clone posix_spawn posix_spawnp uv_spawn", {
        "backend/base/thread.c": SIMULATED,
        "backend/base/process.c": SIMULATED,
        "backend/local/guard.c": SIMULATED,
        "fs/mount/daemon.c": EARLY,
        "fs/mount/mountpoint.c": EARLY,
    }),
    "pause": ("sleep usleep nanosleep clock_nanosleep", {
        "backend/local/guard.c": OTHER_PROCESS,
        "fs/mount/state.c": EARLY,
    }),
}


@pytest.mark.parametrize("seam", SEAMS)
def test_nothing_goes_round_a_seam(seam):
    calls, listed = SEAMS[seam]
    found = {obj.source for obj in objects() if obj.source.startswith(ALL_TOPS)
             and {symbol(name) for name in obj.uses} & set(calls.split())}
    assert not found - listed.keys(), "these must use a function that the simulator replaces: " + ", ".join(sorted(found - listed.keys()))
    assert not listed.keys() - found, f"these need not be listed any more: {sorted(listed.keys() - found)}"
