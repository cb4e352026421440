# SPDX-License-Identifier: MIT
"""Output while everything fails: streams, the server, kubelets' files, kxfs itself. At the end each log equals, byte
for byte, what its program printed."""

import os
import random
import signal
import time

import harness
import pytest
import replies
import store as st
from faults import Fault

APP = harness.app("true")
MESSAGE = replies.Reply(200, b"unable to retrieve container logs for containerd://0123456789abcdef", "text/plain")


def begin(kx, volcano, n=1):
    """Return a job of ours whose pods run: (job, its pods)."""
    job = kx.submit(harness.app("true", num_replicas=n))
    pods = sorted(volcano.start(job.id), key=lambda pod: int(pod.split("-")[-2]))
    assert len(pods) == n
    return job, pods


def size(job, replica="main-0"):
    try:
        return (job / replica / "log").stat().st_size
    except FileNotFoundError:
        return 0


def check(job, logs):
    """Each replica's log is what it printed."""
    for i, log in enumerate(logs):
        whole, name = log.data(), f"main-{i}"
        harness.wait_for(lambda name=name, whole=whole: size(job, name) >= len(whole), what=f"all of {name}")
        got = job.log(name)
        at = next((k for k, (a, b) in enumerate(zip(got, whole)) if a != b), min(len(got), len(whole)))
        assert got == whole, f"{name}: {len(got)} bytes, not {len(whole)}; they differ at {at}: {got[at:at + 100]}"
        assert job.gap(name) == 0, name


class Printer:
    """The output of one replica: lines of any kind, printed in one of the ways that are hard to follow."""

    WAYS = ("plain", "old kubelet", "one time", "clock goes back", "long lines")

    def __init__(self, log, number, seed):
        self.log = log
        self.way = self.WAYS[number % len(self.WAYS)]
        self.random = random.Random(f"{seed} {number}")
        self.log.old = self.way == "old kubelet"
        self.at = time.time_ns()

    def line(self):
        kind = self.random.random()
        if kind < 0.3:
            return b"the same line\n"
        if kind < 0.4:
            return b"\r".join(b"%d%%" % i for i in range(self.random.randrange(20)))
        if kind < 0.42 and self.way != "clock goes back":
            return self.random.randbytes(self.random.randrange(40000)).replace(b"\n", b"\0") + b"\n"
        return self.random.randbytes(self.random.randrange(150)).replace(b"\n", b"\xff") + b"\n"

    def print(self):
        for _ in range(self.random.randrange(8)):
            if self.way == "clock goes back" and len(self.log.data()) > 40000:
                return  # of longer ones a step that no stream saw can't be told from what is known
            data = self.line() * (self.random.randrange(1, 40) if self.way == "long lines" else 1)
            self.log.append(data, at=self.time())

    def time(self):
        if self.way == "one time":
            self.at = self.at if self.random.random() < 0.9 else max(self.at, time.time_ns())
            return self.at
        if self.way == "clock goes back" and self.random.random() < 0.2:
            return time.time_ns() - self.random.randrange(5 * 10**9)
        return None


def seed_of(pytestconfig):
    seed = pytestconfig.getoption("--seed") or int(time.time())
    print(f"seed {seed}")
    return seed


@pytest.mark.waits
def test_cut_and_cut(kx, server, volcano, pytestconfig):
    """The streams of a hundred logs break repeatedly, in every way."""
    seed = seed_of(pytestconfig)
    rand = random.Random(seed)
    job, pods = begin(kx, volcano, 100)
    server.faults.at_random(seed, 0.6, [
        lambda r: Fault("cut", int(10 ** r.uniform(0, 6))), lambda r: Fault("cut", int(10 ** r.uniform(4, 6))),
        lambda r: Fault("close", int(10 ** r.uniform(2, 6))), lambda r: Fault("cut", int(10 ** r.uniform(4, 6))),
        lambda r: Fault("reset"), lambda r: Fault("reply", reply=replies.internal()),
        lambda r: Fault("reply", reply=MESSAGE)], subresource="log")
    printers = [Printer(volcano.log(pod), i, seed) for i, pod in enumerate(pods)]
    asked, end = 0, time.monotonic() + 45
    while (asked := server.count(subresource="log")) < 1200 and time.monotonic() < end:
        for printer in rand.sample(printers, 30):
            printer.print()
        if rand.random() < 0.08:
            server.end_streams(rand.choice(["end", "close", "reset"]), subresource="log")
        time.sleep(0.02)
    print(f"{asked} streams")
    server.faults.clear()
    volcano.finish_all(pods)
    job.finish()
    check(job, [printer.log for printer in printers])


@pytest.mark.waits
def test_killed_at_random(kx, server, volcano, pytestconfig):
    """kxfs is killed repeatedly while it writes; the server disappears in between."""
    seed = seed_of(pytestconfig)
    rand = random.Random(seed)
    job, pods = begin(kx, volcano, 5)
    printers = [Printer(volcano.log(pod), i, seed) for i, pod in enumerate(pods)]
    for i in range(8):
        until = time.monotonic() + 1.5 * rand.random()
        while time.monotonic() < until:
            for printer in printers:
                printer.print()
            time.sleep(0.01)
        if i % 3 == 2:
            server.away()
            server.back()
        else:
            kx.end(signal.SIGKILL)
            for printer in printers:
                printer.print()
            kx.start()
    volcano.finish_all(pods)
    job.finish()
    check(job, [printer.log for printer in printers])


@pytest.mark.parametrize("lost", [1, 7, 5000])
def test_torn_write(kx, volcano, lost):
    """The end of the spool file is missing after a crash: it is fetched again."""
    job, (pod,) = begin(kx, volcano)
    log = volcano.log(pod)
    for i in range(1000):
        log.append(f"line {i}\n")
    harness.wait_for(lambda: size(job) == len(log.data()))
    harness.wait_for(lambda: len(job.read("log").splitlines()) == 1000)
    kx.end(signal.SIGKILL)
    (path,) = (kx.folder(job.id) / "logs").iterdir()
    os.truncate(path, path.stat().st_size - lost)
    log.append("more\n")
    kx.start()
    volcano.finish(pod)
    job.finish()
    check(job, [log])
    harness.wait_for(lambda: job.read("log").endswith("main/0 more\n"))
    assert job.read("log").splitlines() == [f"main/0 {line}" for line in job.log().decode().splitlines()]


def test_rotated_while_followed(kx, server, volcano):
    """The kubelet rotates the file repeatedly: an open stream continues, a broken one resumes with the remaining
    output."""
    job, (pod,) = begin(kx, volcano)
    log = volcano.log(pod)
    for i in range(20):
        for k in range(50):
            log.append(f"line {i}.{k}\n")
        harness.wait_for(lambda: size(job) == len(log.data()))
        log.rotate(keep=10 * (i % 4))
        if i % 4 == 3:
            server.end_streams("reset", subresource="log")
    volcano.finish(pod)
    job.finish()
    check(job, [log])


@pytest.mark.concurrent
def test_terminating(kx, server, volcano):
    """A terminating pod is drained within its grace period, though its stream breaks and the server refuses."""
    volcano.keep_pods = True
    job, (pod,) = begin(kx, volcano)
    log = volcano.log(pod)
    log.append("working\n")
    job.until_logged("working\n")
    job.cancel()
    server.store.change(st.PODS, "test", pod, lambda tree: tree["metadata"].update(deletionTimestamp=st.now()))
    server.faults.add("reply", times=2, subresource="log", reply=replies.internal())
    server.end_streams("reset", subresource="log")
    log.append("saving\n")
    log.append("saved\n")
    harness.wait_for(lambda: (job.old / "main-0/log").read_bytes() == b"working\nsaving\nsaved\n")
    log.append("bye")
    volcano.remove_pods(job.id)
    harness.wait_for(lambda: (job.old / "main-0/log").read_bytes() == b"working\nsaving\nsaved\nbye")
    harness.wait_for(lambda: (job.old / "log").read_text().rstrip("\n").endswith("main/0 bye"))
    assert job.gap(where=job.old) == 0
