# SPDX-License-Identifier: MIT
"""First process of the node's namespaces: node_init.py DIRECTORY CGROUP.

It gives the node its own /run, /var/lib, /var/log and cgroups, so that containerd and the kubelet
neither collide with others nor leave anything behind. When this process ends, the kernel kills all
others in its PID namespace, and their mounts and network disappear. Until then it reaps children.
"""

import ctypes
import fcntl
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import time


def mount(*args):
    subprocess.run(["mount", *map(str, args)], check=True)


CLONE_NEWCGROUP = 0x02000000
SIOCSIFFLAGS = 0x8914
IFF_UP = 1

# Settings that a kubelet makes for the whole machine.
SETTINGS = {
    "vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1000000, "kernel/keys/root_maxbytes": 25000000,
}


def own_settings(place):
    """Let the kubelet find these settings already made, in files of our own."""
    place.mkdir(parents=True)
    for name, value in SETTINGS.items():
        file = place / name.replace("/", "-")
        file.write_text(f"{value}\n")
        mount("--bind", file, f"/proc/sys/{name}")


def hierarchies():
    """Return (directory, type, mount options) of each cgroup hierarchy."""
    found = []
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split()
        if kind in ("cgroup", "cgroup2"):
            names = [word for word in options.split(",") if word not in ("rw", "ro")]
            if any(word.startswith("name=") for word in names):
                names.append("none")
            found.append((pathlib.Path(left.split()[4]), kind, ",".join(names) if kind == "cgroup" else "rw"))
    return found


def own_groups(name):
    """Make cgroup NAME of each hierarchy the root of everything that the node sees."""
    groups = hierarchies()
    for path, _, _ in groups:
        (path / name).mkdir()
        # cgroups v1: a new group has no CPUs, and can't run anything
        for file in ("cpuset.cpus", "cpuset.mems"):
            if (path / file).exists() and (path / name / file).exists():
                (path / name / file).write_text((path / file).read_text())
        (path / name / "cgroup.procs").write_text("0")
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWCGROUP):
        raise OSError(ctypes.get_errno(), "unshare")
    for path, kind, options in groups:
        subprocess.run(["umount", path], check=True)
        mount("-t", kind, "-o", options, kind, path)
        join(path)


def join(path):
    """Enter a group for the node's own programs. In cgroups v2, a group with child groups can't
    contain processes."""
    (path / "node").mkdir(exist_ok=True)
    for file in ("cpuset.cpus", "cpuset.mems"):
        if (path / "node" / file).exists() and (path / file).exists():
            (path / "node" / file).write_text((path / file).read_text())
    (path / "node/cgroup.procs").write_text("0")


def loopback_up():
    """Enable the loopback interface, on which containerd listens."""
    with socket.socket() as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def main():
    base, group = pathlib.Path(sys.argv[1]), sys.argv[2]
    loopback_up()
    own_settings(base / "sys")
    own_groups(group)
    for name, path in (("run", "/run"), ("lib", "/var/lib"), ("log", "/var/log")):
        (base / name).mkdir(parents=True)
        mount("--bind", base / name, path)
    mount("--make-rshared", "/")
    (base / "ready").touch()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while True:
        try:
            os.wait()
        except ChildProcessError:
            time.sleep(0.2)


main()
