# SPDX-License-Identifier: MIT
"""The disk with the output of one job hangs: all else continues, and nothing of that output is lost."""

import concurrent.futures
import os
import signal

import harness
import pytest
import store as st
import watching
from disk import started

APP = harness.app("true")


@pytest.fixture
def slow(make_mount, server, volcano):
    """(mount, its disk)"""
    del volcano
    with started(make_mount(server, start=False)) as both:
        yield both


def others_go_on(kx, disk, volcano):
    """A listing, a submission, and another job from its start to its end, with its output."""
    with disk.still():
        other_job(kx, volcano)


def other_job(kx, volcano):
    assert len(os.listdir(kx / "jobs")) == 1
    job = kx.submit(APP)
    (pod,) = volcano.start(job.id)
    volcano.log(pod).append("hello\n")
    job.until_logged("hello\n")
    volcano.finish(pod)
    job.finish()
    assert job.read("log") == "main/0 hello\n"
    assert (kx / "jobs").joinpath(job.id, "state").read_text() == "SUCCEEDED\n"


def whole(job, text):
    """All output is there, once, in the log and in the merged one."""
    harness.wait_for(lambda: job.log() == text.encode(), what="the log")
    merged = "".join(f"main/0 {line}" for line in text.splitlines(True))
    harness.wait_for(lambda: job.read("log") == merged, what="the merged log")
    assert job.gap() == 0


@pytest.mark.parametrize("call, part", [
    ("mkdir", "logs"),      # the job's folder
    ("create", "logs/"),    # the log's file
    ("getattr", "logs/"),   # whatever looks at it
    ("create", "lines/"),
])
def test_at_the_beginning(slow, volcano, call, part):
    kx, disk = slow
    job = kx.submit(APP)
    disk.hang(call, f"/{kx.folder(job.id).name}/{part}")
    (pod,) = volcano.start(job.id)
    volcano.log(pod).append("one\ntwo\n")
    harness.wait_for(lambda: disk.hangs(f"/{kx.folder(job.id).name}/{part}"), what="a hanging disk")
    others_go_on(kx, disk, volcano)
    disk.go_on()
    volcano.finish(pod)
    job.finish()
    whole(job, "one\ntwo\n")


@pytest.mark.parametrize("part", ["lines/", "logs/", "merged"])
def test_killed_before_it_is_written(slow, volcano, part):
    """A reader of `follow` got a line that is not on disk when kxfs is killed: the next mount has it, once."""
    kx, disk = slow
    job = kx.submit(APP)
    (pod,) = volcano.start(job.id)
    log = volcano.log(pod)
    log.append("one\n")
    harness.wait_for(lambda: job.read("log") == "main/0 one\n", what="the first line")

    def written():
        files = [path for path in (kx.base / "disk/output" / kx.folder(job.id).name).rglob("*") if path.is_file()]
        return {str(path): path.read_bytes() for path in files if f"/{part}" in str(path)}

    before = written()
    disk.hang("write", f"/{kx.folder(job.id).name}/{part}")
    with disk.still(), open(job / "main-0/follow", "rb", buffering=0) as follow:
        log.append("two\n")
        given = b""
        while given != b"one\ntwo\n":
            given += follow.read(100)
        harness.wait_for(lambda: disk.hangs(f"/{kx.folder(job.id).name}/{part}"), what="a hanging disk")
    kx.end(signal.SIGKILL)
    assert before and written() == before
    disk.go_on()
    kx.start()
    log.append("three\n")
    volcano.finish(pod)
    job.finish()
    whole(job, "one\ntwo\nthree\n")
    assert job.read("main-0", "follow", binary=True) == job.log()
    assert job.read("follow") == job.read("log")
    times, texts = zip(*(line.split(" ", 1) for line in job.read("main-0", "stamped").splitlines()))
    assert texts == ("one", "two", "three") and list(times) == sorted(set(times))


@pytest.mark.parametrize("call, part", [
    ("open", "logs/"),      # what is left of it is read
    ("close", "logs/"),
])
def test_at_the_end(slow, volcano, call, part):
    kx, disk = slow
    job = kx.submit(APP)
    (pod,) = volcano.start(job.id)
    volcano.log(pod).append("one\n")
    job.until_logged("one\n")
    disk.hang(call, f"/{kx.folder(job.id).name}/{part}")
    volcano.finish(pod)
    harness.wait_for(lambda: disk.hangs(f"/{kx.folder(job.id).name}/{part}"), what="a hanging disk")
    others_go_on(kx, disk, volcano)
    disk.go_on()
    job.finish()
    whole(job, "one\n")


def test_slowed(slow, server, volcano):
    """A log that is faster than the disk is slowed down, and not requested again later, when it may have been
    rotated. Others are not slowed down."""
    kx, disk = slow
    job = kx.submit(APP)
    (pod,) = volcano.start(job.id)
    log = volcano.log(pod)
    log.append("one\n")
    job.until_logged("one\n")
    disk.hang("write", f"/{kx.folder(job.id).name}/logs/")
    for number in range(9):
        log.append("".join(f"{number} {i} {'x' * 8000}\n" for i in range(1000)))
    harness.wait_for(lambda: disk.hangs(f"/{kx.folder(job.id).name}/logs/"), what="a hanging disk")
    others_go_on(kx, disk, volcano)
    log.rotate()
    disk.go_on()
    log.append("last\n")
    volcano.finish(pod)
    job.finish()
    harness.wait_for(lambda: job.log() == log.data(), what="the log")
    assert job.gap() == 0
    assert len([req for req in server.seen(subresource="log", name=pod) if "follow" in req.query]) == 1
