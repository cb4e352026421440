# SPDX-License-Identifier: MIT
"""Logs have the output of pods byte for byte, whatever happens to the streams."""

import concurrent.futures
import itertools
import os
import random
import re
import resource
import signal
import time

import harness
import pytest
import records
import replies
import store as st
import watching
import yaml
from starting import background

APP = harness.app("true")


def begin(kx, volcano, text=APP, n=1):
    """Submit a job and let its pods run. Return (job, logs of its pods)."""
    job = kx.submit(text)
    pods = volcano.start(job.id)
    assert len(pods) == n
    return job, [volcano.log(pod) for pod in pods]


def log_requests(server):
    return server.seen(subresource="log")


def printed(job, replica="main-0"):
    """Return the log of REPLICA, or b"" if the replica has not run yet or opening the log has timed out."""
    try:
        return job.log(replica)
    except (FileNotFoundError, TimeoutError):
        return b""


def is_complete(kx, job, replica=0):
    """True if kxfs knows that it has the whole log of REPLICA, so that it sends no more requests for it."""
    snapshot = records.snapshot_of(records.of(kx, job.id))
    if not snapshot:
        return False  # kxfs writes the record soon
    logs = snapshot["replicas"][replica]["logs"]
    return len(logs) > 0 and all(log["complete"] for log in logs)


def holds(job, data, replica="main-0", name="log"):
    """Wait until the log NAME has the contents DATA. Check that it never has other contents."""
    def same():
        try:
            now = job.log(replica, name)
        except (FileNotFoundError, TimeoutError):
            return False
        assert data.startswith(now), (len(now), now[-200:], data[:len(now)][-200:])
        return now == data
    harness.wait_for(same, what="the whole log")
    assert (job / replica / name).stat().st_size == len(data)


def test_captured(kx, server, volcano):
    """Output is captured from the start, even if no process reads it. When the job has ended, its log has ended."""
    job, (log,) = begin(kx, volcano)
    log.append("one\ntwo\n")
    harness.wait_for(lambda: printed(job))
    harness.wait_for(lambda: (job / "main-0/log").stat().st_size == 8)
    assert job.log() == b"one\ntwo\n"
    log.append("no newline")
    begun = time.monotonic()
    volcano.finish(volcano.pods(job.id)[0])
    job.finish()
    holds(job, b"one\ntwo\nno newline")
    # The last bytes may arrive before kxfs knows that they are the last. The record shows when the capture has ended.
    harness.wait_for(lambda: is_complete(kx, job), what="the end of the capture")
    # The first request is the stream, and the others fetch the rest: one when the container's end is reported, one
    # before that if the stream ended first, and more after pauses while the event is late.
    stream, *looks = log_requests(server)
    assert stream.query["container"] == "main-0" and stream.query["follow"] in ("true", "1")
    assert len(looks) <= 2 + 2 * (time.monotonic() - begun)
    for _ in range(20):
        job.log()
    assert log_requests(server) == [stream, *looks]


def test_read_right_after_the_end(kx, volcano):
    """A process that reads a log right after the end of the job gets all of it, even if the node is late."""
    for _ in range(10):
        job, (log,) = begin(kx, volcano)
        log.append("one\n")
        job.until_logged("one\n")
        log.hold()
        log.append("last\n")
        begun = time.monotonic()
        volcano.finish(volcano.pods(job.id)[0])
        job.until("SUCCEEDED")

        def is_soon(begun=begun):  # true before kxfs requests the rest of the log
            return time.monotonic() - begun < 4

        with concurrent.futures.ThreadPoolExecutor() as pool:
            try:
                own, merged = pool.submit(job.log), pool.submit(job.read, "log")
                harness.wait_for(lambda: 'kxfs_parked_requests{kind="open"} 2\n' in kx.read(".kxfs", "metrics")
                                 or not is_soon(), what="both that wait")
            finally:
                log.go_on()
            soon = is_soon()
            own, merged = own.result(), merged.result()
        if soon:
            assert (own, merged) == (b"one\nlast\n", "main/0 one\nmain/0 last\n")
            return
    pytest.fail("this machine is too slow")


BYTES = {
    "binary": bytes(range(256)) * 64 + b"\n",
    "NUL": b"a\0b\n\0\n",
    "progress bar": b"".join(b"\r%3d%%" % i for i in range(101)) + b"\ndone\n",
    "long line": b"x" * 100_000 + b"\nshort\n",
    "pieces of 16 KiB": (b"y" * 16384 + b"\n") * 3 + b"z" * 32768,
    "looks like times": b"2026-11-21T09:08:40.123456789Z hello\n2026-11-21T09:08:40Z\n",
    "empty lines": b"\n\n\n\nx\n\n",
    "not UTF-8": b"\xff\xfe\xc3\x28\n",
}


@pytest.mark.parametrize("name", BYTES)
def test_bytes_are_exact(kx, volcano, name):
    job, (log,) = begin(kx, volcano)
    log.append(BYTES[name])
    volcano.finish(volcano.pods(job.id)[0])
    holds(job, BYTES[name])


@pytest.mark.parametrize("how", ["end", "close", "reset"])
@pytest.mark.concurrent
def test_stream_that_ends(kx, server, volcano, how):
    """A stream that ends is resumed at the last line. No output is lost or appears twice, even within one second and
    within one line."""
    job, (log,) = begin(kx, volcano)
    whole = b""
    for i in range(12):
        data = b"".join(b"line %d.%d\n" % (i, k) for k in range(7)) + (b"half " if i % 3 == 0 else b"")
        log.append(data)
        whole += data
        harness.wait_for(lambda: server.open_streams(subresource="log"))
        if i % 2:
            harness.wait_for(lambda whole=whole: printed(job) in (whole, whole.removesuffix(b"half ")))
        server.end_streams(how, subresource="log")
    volcano.finish(volcano.pods(job.id)[0])
    holds(job, whole)
    assert job.gap() == 0


def test_ends_while_away(kx, server, volcano):
    """The server is unreachable until the pod is deleted. The log has what was fetched before, and the gap is
    reported."""
    job, (log,) = begin(kx, volcano)
    log.append("before\n")
    job.until_logged("before\n")
    server.away()
    log.append("lost\n")
    server.store.remove(st.JOBS, "test", job.id)
    server.back()
    harness.wait_for(lambda: job.id in kx.history())
    assert (job.old / "main-0/log").read_bytes() == b"before\n"
    harness.wait_for(lambda: job.gap(where=job.old) == 1)


def test_rotated_away(kx, server, volcano):
    """If the kubelet no longer has some lines, `status` reports a gap, and later lines are in the log."""
    job, (log,) = begin(kx, volcano)
    log.append("one\n")
    job.until_logged("one\n")
    server.away()
    log.append("two\n", at=time.time_ns() + 3 * 10**9)
    log.rotate()
    log.append("three\n", at=time.time_ns() + 6 * 10**9)
    server.back()
    job.until_logged("three\n")
    assert job.log() == b"one\nthree\n"
    harness.wait_for(lambda: job.gap() == 1, what="the gap in status")
    assert "may have lost output" in kx.read(".kxfs", "log")


def test_lost_by_the_kubelet(kx, server, volcano):
    """A kubelet that has not noticed a rotation follows the old file for ever. kxfs detects that the stream is
    silent."""
    job, (log,) = begin(kx, volcano)
    for text in ("one", "two"):
        log.append((text + " " * 1000 + "\n") * 300)
        harness.wait_for(lambda: printed(job) == log.data(), what=text)
        log.lose()
    log.append("three\n")
    harness.wait_for(lambda: printed(job) == log.data(), what="what was printed after the rotation")
    # kxfs can't know whether anything was printed in between.
    harness.wait_for(lambda: job.gap() in (1, 2), what="the gap in status")


def test_not_started_yet(kx, server, volcano):
    """A pod without a node (204) or with a container that is being created (400) is not an error."""
    volcano.schedule = False
    job = kx.submit(APP)
    harness.wait_for(lambda: job.replica()["pod"])
    assert printed(job) == b""
    (pod,) = volcano.pods(job.id)
    server.store.change(st.PODS, "test", pod, lambda tree: tree["spec"].update(nodeName="node-1"))
    volcano.wait_reason(pod, "ContainerCreating")
    assert printed(job) == b""
    volcano.log(pod).append("at last\n")
    volcano.run(pod)
    holds(job, b"at last\n")


@pytest.mark.concurrent
def test_attempts(kx, server, volcano):
    """Each attempt keeps its own log, even after Volcano has deleted its pod."""
    del server
    job = kx.submit(harness.app("true", retry_policy="APPLICATION", max_retries=3))
    for i in range(3):
        (pod,) = volcano.start(job.id)
        volcano.log(pod).append(f"attempt {i}\n")
        job.until_logged(f"attempt {i}\n")
        volcano.finish(pod, 0 if i == 2 else 3)
    job.finish()
    assert [job.log(name=name) for name in ("log.0", "log.1", "log")] == [
        b"attempt 0\n", b"attempt 1\n", b"attempt 2\n"]
    assert job.replica()["attempt"] == 2


def test_container_that_restarts(kx, server, volcano):
    """With restartPolicy OnFailure, a pod has several runs. Each run has its own log."""
    job, (log,) = begin(kx, volcano)
    (pod,) = volcano.pods(job.id)
    log.append("first\n")
    job.until_logged("first\n")
    volcano.restart_container(pod)
    volcano.log(pod, restart=1).append("second\n")
    harness.wait_for(lambda: printed(job) == b"second\n")
    assert job.log(name="log.0") == b"first\n"


def print_in_turn(logs, begin):
    """Print lines to LOGS at known times, from BEGIN (ns since 1970) on: first all lines of the first log, then
    those of the next. Return the expected lines of the merged log."""
    order = [random.randrange(len(logs)) for _ in range(3000)]
    times = list(itertools.accumulate(
        random.choices([1, 1000, 1_000_000, 300_000_000], k=len(order)), initial=begin))
    for k, log in enumerate(logs):
        for i, turn in enumerate(order):
            if turn == k:
                log.append(f"{i}\n", at=times[i])
    return [f"main/{k} {i}" for i, k in enumerate(order)]


def test_merged_by_time(make_mount, server, volcano):
    """The merged log orders lines by time, even if logs are fetched only when they are opened, or were written while
    kxfs was not running."""
    kx = make_mount(server, options="capture=none")
    job, logs = begin(kx, volcano, harness.app("true", num_replicas=10), 10)
    harness.wait_for(lambda: all(job.read(f"main-{k}", "state") == "RUNNING\n" for k in range(10)))
    now = time.time_ns()
    expected = print_in_turn(logs, now - 3600 * 1_000_000_000)
    assert job.read("log").splitlines() == expected
    kx.restart(signal.SIGKILL)
    expected += print_in_turn(logs, now)
    assert job.read("log").splitlines() == expected


@pytest.mark.concurrent
def test_follow(kx, volcano):
    """`follow` ends when the job has ended."""
    job, logs = begin(kx, volcano, harness.app("true", num_replicas=2), 2)
    one = harness.popen(["cat", str(job / "main-0/follow")], stdout=-1)
    both = harness.popen(["cat", str(job / "follow")], stdout=-1)
    for k, log in enumerate(logs):
        log.append(f"hello {k}\n")
    for pod in volcano.pods(job.id):
        volcano.finish(pod)
    assert one.communicate(timeout=harness.LIMIT)[0] == b"hello 0\n"
    assert sorted(both.communicate(timeout=harness.LIMIT)[0].splitlines()) == [
        b"main/0 hello 0", b"main/1 hello 1"]


@pytest.mark.parametrize("seen", [True, False], ids=["seen", "not seen"])
@pytest.mark.parametrize("name", ["main-0/follow", "follow"])
def test_follow_when_pods_come_late(kx, server, volcano, name, seen):
    """The end of the job is reported before the ends of its pods, or before any event of the pods. `follow` waits
    for the output of the pods."""
    job = kx.submit(APP) if seen else None
    if seen:
        harness.wait_for(lambda: job.replica()["pod"], what="its pod")
    for verb in ("watch", "list"):
        server.faults.add("reply", times=1000, resource="pods", subresource="", verb=verb, reply=replies.internal())
    server.end_streams("end", resource="pods", verb="watch")
    harness.wait_for(lambda: "\nstale_since: 20" in watching.known(kx), what="the end of the watch of pods")
    job = job or kx.submit(APP)
    (pod,) = volcano.start(job.id)
    volcano.log(pod).append("hello\n")
    volcano.finish(pod)
    job.until("SUCCEEDED")
    with open(job / name, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as file:
        assert harness.err_of(os.read, file.fileno(), 100) == "EAGAIN"
    with open(job / name, "rb") as file:
        reader = harness.popen(["cat"], stdin=file, stdout=-1)
    server.faults.clear()
    assert reader.communicate(timeout=harness.LIMIT)[0].endswith(b"hello\n")


@pytest.mark.parametrize("name", ["main-0/follow", "follow"])
def test_follow_of_a_job_without_pods(kx, server, name):
    """`follow` of a job without pods ends soon after the job: if there were pods, they would have been reported."""
    server.store.add(st.JOBS, watching.job("one", phase="Running"))
    job = harness.Job(kx, "one")
    harness.wait_for(lambda: "one" in kx.ls("jobs"), what="the job")
    reader = harness.popen(["cat", str(job / name)], stdout=-1)
    server.store.change(st.JOBS, "test", "one", lambda tree: tree["status"].update(state={"phase": "Failed"}))
    assert reader.communicate(timeout=harness.LIMIT)[0] == b""
    assert job.state() == "FAILED" and job.replica()["pod"] == ""


def others(server, phase="Running", **kwargs):
    """Add a job of another user. Return it and its pod."""
    job = server.store.add(st.JOBS, watching.job("theirs", phase=phase))
    return job, server.store.add(st.PODS, watching.pod(job, "main", 0, phase=phase, **kwargs))


@pytest.mark.concurrent
def test_of_others(server, make_mount):
    """The log of another user's job is fetched when it is opened. The open waits until the existing output has
    arrived."""
    _, pod = others(server)
    log = server.api.log(pod, "main")
    log.append("hello\n" * 1000)
    kx = make_mount(server)
    job = harness.Job(kx, "theirs")
    assert (job / "main-0/log").stat().st_size == 0
    assert not log_requests(server)
    assert job.log() == b"hello\n" * 1000
    assert (job / "main-0/log").stat().st_size == 6000


def test_follow_of_others(server, make_mount, tmp_path):
    """`follow` of another user's job also shows the output of pods that are created later."""
    owner = server.store.add(st.JOBS, watching.job("theirs", phase="Pending"))
    kx = make_mount(server)
    with open(tmp_path / "out", "wb") as out:
        reader = harness.popen(["cat", str(kx / "jobs/theirs/follow")], stdout=out)
    harness.wait_for(lambda: 'kxfs_parked_requests{kind="read"} 1\n' in kx.read(".kxfs", "metrics"), what="the reader")
    pod = server.store.add(st.PODS, watching.pod(owner, "main", 0, phase="Running", containers=("main", "side")))
    log = server.api.log(pod, "main")
    log.append("hello\n")
    harness.wait_for(lambda: (tmp_path / "out").read_bytes() == b"main/0 hello\n", timeout=20, what="the output")
    log.append("bye\n")
    log.end()
    server.store.put(st.PODS, {**watching.pod(owner, "main", 0, phase="Succeeded"), "metadata": pod.tree()["metadata"]})
    server.store.change(st.JOBS, "test", "theirs", lambda tree: tree["status"].update(state={"phase": "Completed"}))
    reader.wait(harness.LIMIT)
    assert (tmp_path / "out").read_bytes() == b"main/0 hello\nmain/0 bye\n"
    assert {req.query["container"] for req in log_requests(server)} == {"main"}


def test_merged_log_of_others(server, make_mount, volcano):
    """While a process has the merged log of another user's job open, kxfs adds the output of each retry."""
    tree = watching.job("theirs")
    tree["spec"]["policies"] = [{"event": "PodFailed", "action": "RestartJob"}]
    server.store.add(st.JOBS, tree)
    kx = make_mount(server)
    with open(kx / "jobs/theirs/log", "rb", buffering=0) as log:
        for word in (b"first", b"second"):
            (pod,) = volcano.start("theirs")
            volcano.log(pod).append(word + b"\n")
            assert harness.wait_for(log.read, timeout=20, what="the output") == b"main/0 " + word + b"\n"
            volcano.finish(pod, 1)
    assert kx.read("jobs/theirs/log") == "main/0 first\nmain/0 second\n"


def test_capture_none(make_mount, server, volcano):
    kx = make_mount(server, options="capture=none")
    job, (log,) = begin(kx, volcano)
    log.append("hello\n")
    job.until("RUNNING")
    time.sleep(1)
    assert not log_requests(server)
    assert job.log() == b"hello\n"


def test_merged_is_of_the_replicas(server, make_mount):
    """Other containers and init containers of a pod have their own files. The merged log has only the output of each
    replica's own container."""
    group, pod = others(server, containers=("main", "side"), init=("prep",))
    logs = {name: server.api.log(pod, name) for name in ("prep", "side", "main")}
    for name, log in logs.items():
        log.append(f"I am {name}\n")
    kx = make_mount(server, options="capture=all")
    job = harness.Job(kx, "theirs")
    for name in ("main-0/log", "main-0/side.log", "main-0/prep.log"):
        harness.wait_for(lambda name=name: (job / name).stat().st_size > 0)
    logs["side"].append("still here\n")
    logs["main"].append("and here\n")
    harness.wait_for(lambda: (job / "main-0/side.log").stat().st_size == 21)
    merged = "main/0 I am main\nmain/0 and here\n"
    harness.wait_for(lambda: job.read("log") == merged)
    for log in logs.values():
        log.end()
    server.store.remove(st.PODS, "test", pod.name)
    server.store.remove(st.JOBS, "test", group.name)
    harness.wait_for(lambda: "theirs" in kx.ls("history"))
    assert kx.read("history", "theirs", "log") == merged
    assert kx.read("history", "theirs", "main-0", "side.log") == "I am side\nstill here\n"
    assert kx.read("history", "theirs", "main-0", "prep.log") == "I am prep\n"


def test_errors_that_come_with_200(server, make_mount):
    """The kubelet's own messages, which come with status 200, do not appear as output."""
    others(server, phase="Succeeded")
    server.faults.add("reply", times=100, subresource="log", reply=replies.Reply(
        200, b"unable to retrieve container logs for containerd://0123456789abcdef", "text/plain"))
    kx = make_mount(server)
    assert harness.Job(kx, "theirs").log() == b""


def test_many_streams(make_mount, server, volcano):
    """A job has 300 replicas. All their logs are captured at the same time, and a write does not wait behind them."""
    kx = make_mount(server)
    job = kx.submit(harness.app("true", num_replicas=300))
    pods = volcano.start(job.id)
    for i, pod in enumerate(pods):
        volcano.log(pod).append(f"{pod}\n" * 100)
    harness.wait_for(lambda: all(printed(job, f"main-{i}") for i in range(300)))
    kx.submit(APP)  # otherwise it would fail with ETIMEDOUT after 30 s
    volcano.finish_all(pods)
    for i in (0, 150, 299):
        holds(job, f"{job.id}-main-{i}-0\n".encode() * 100, f"main-{i}")


def test_as_many_streams_as_descriptors(make_mount, server, volcano):
    """A job has 60 logs, but the limit of descriptors, although kxfs has raised it, allows 22
    streams at the same time. The other logs are fetched when they are urgent."""
    kx = make_mount(server, start=False)
    with background(kx, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 300))):
        job = kx.submit(harness.app("true", num_replicas=60))
        pods = volcano.start(job.id)
        for pod in pods:
            volcano.log(pod).append(f"{pod}\n")
        harness.wait_for(lambda: "kxfs_log_streams 22\nkxfs" in re.sub("^#.*\n", "", kx.read(".kxfs", "metrics"), flags=re.M))
        harness.wait_for(lambda: job.status()["logs_waiting"] == 38, what="the waiting logs in status")
        volcano.finish_all(pods)
        for i in range(60):
            holds(job, f"{job.id}-main-{i}-0\n".encode(), f"main-{i}")


@pytest.mark.concurrent
def test_remount_goes_on(kx, volcano):
    """After an unmount and after a kill, kxfs fetches output that was printed while it did not run. Each line appears
    once."""
    job, (log,) = begin(kx, volcano)
    log.append("one\n")
    job.until_logged("one\n")
    kx.end()
    log.append("two\n")
    kx.start()
    log.append("three\n")
    holds(job, b"one\ntwo\nthree\n")
    kx.end(signal.SIGKILL)
    log.append("four\n")
    kx.start()
    holds(job, b"one\ntwo\nthree\nfour\n")


@pytest.mark.parametrize("lost", [1, 7, 5000])
def test_torn_write(kx, volcano, lost):
    """A crash of the machine has removed the end of the captured output. kxfs fetches it again."""
    job, (log,) = begin(kx, volcano)
    for i in range(1000):
        log.append(f"line {i}\n")
    harness.wait_for(lambda: len(job.read("log").splitlines()) == 1000)
    kx.end(signal.SIGKILL)
    (path,) = (kx.folder(job.id) / "logs").iterdir()
    os.truncate(path, path.stat().st_size - lost)
    log.append("more\n")
    kx.start()
    volcano.finish_all(volcano.pods(job.id))
    job.finish()
    holds(job, log.data())
    assert job.gap() == 0
    harness.wait_for(lambda: job.read("log").endswith("main/0 more\n"))
    assert job.read("log").splitlines() == [f"main/0 {line}" for line in job.log().decode().splitlines()]


@pytest.mark.concurrent
def test_terminating(kx, server, volcano):
    """A job is removed. The output that its pod prints within its grace period is fetched, although the stream breaks
    and the server refuses requests."""
    volcano.keep_pods = True
    job, (log,) = begin(kx, volcano)
    (pod,) = volcano.pods(job.id)
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


NO_LOGS = {"verb": "get", "resource": "pods", "subresource": "log"}


def test_forbidden_is_said(make_mount, server, volcano):
    """Without the right to pods/log, opening a log fails with EACCES. .kxfs/info and .kxfs/log have the reason until
    the right is granted."""
    server.forbidden.append(NO_LOGS)
    kx = make_mount(server)
    job = kx.submit(harness.app("true"))
    (pod,) = volcano.start(job.id)
    volcano.log(pod).append("hello\n")
    (refused,) = harness.wait_for(lambda: yaml.safe_load(kx.read(".kxfs/info"))["refused"], what="the refusal")
    assert (refused["verb"], refused["resource"]) == ("get", "pods/log")
    assert refused["cost"] == "kxfs can open only logs that it has already captured"
    assert "may not get pods/log" in refused["answer"]
    harness.wait_for(lambda: "pods/log" in kx.read(".kxfs/log"))
    for name in ("main-0/log", "main-0/stamped", "main-0/follow", "log", "stamped", "follow"):
        assert harness.err_of(kx.read, "jobs", job.id, name) == "EACCES", name
    assert (job / "main-0/log").stat().st_size == 0
    server.forbidden.clear()
    harness.wait_for(lambda: harness.err_of(kx.read, "jobs", job.id, "main-0/log") == "", what="the right")
    job.until_logged("hello\n")
    assert job.log() == b"hello\n"
    assert (job / "log").read_text() == "main/0 hello\n"
    volcano.finish_all([pod])
    job.finish()
    assert yaml.safe_load(kx.read(".kxfs/info"))["refused"] == []


def test_why_without_the_right(make_mount, server, volcano):
    """`why` reports that a log may be incomplete because the user has no right to read logs."""
    server.forbidden.append(NO_LOGS)
    kx = make_mount(server)
    job = kx.submit(harness.app("false"))
    (pod,) = volcano.start(job.id)
    volcano.finish(pod, 3)
    job.finish("FAILED")
    harness.wait_for(lambda: "Its output is in main-0/log. This log has only what kxfs has "
                             "captured, because this user has no right to get pods/log."
                     in job.read("why"), what="the right in why")


def test_allowed_without_output(make_mount, server, volcano):
    """When the right is granted, kxfs notices that as soon as the server returns the log, even if the log is empty."""
    server.forbidden.append(NO_LOGS)
    kx = make_mount(server)
    job = kx.submit(harness.app("true"))
    volcano.start(job.id)
    harness.wait_for(lambda: harness.err_of(job.log) == "EACCES")
    server.forbidden.clear()
    harness.wait_for(lambda: harness.err_of(job.log) == "", what="the right")
    assert job.log() == b""
    assert harness.err_of(kx.read, "jobs", job.id, "log") == ""
    assert yaml.safe_load(kx.read(".kxfs/info"))["refused"] == []


def test_forbidden_later(make_mount, server, volcano):
    """When the right is revoked, captured output remains readable. A new log fails with EACCES. kxfs reports the
    missing right once, not for each log."""
    kx = make_mount(server)
    job = kx.submit(harness.app("true", num_replicas=2))
    pods = volcano.pods(job.id)
    volcano.run(pods[0])
    volcano.log(pods[0]).append("hello\n")
    job.until_logged("hello\n")
    server.forbidden.append(NO_LOGS)
    early = open(job / "main-1/log", "rb")
    volcano.run(pods[1])
    harness.wait_for(lambda: harness.err_of(job.log, "main-1") == "EACCES", what="the refusal")
    assert harness.err_of(early.read) == "EACCES"
    early.close()
    assert len(yaml.safe_load(kx.read(".kxfs/info"))["refused"]) == 1
    assert job.log() == b"hello\n"
    assert (job / "log").read_text() == "main/0 hello\n"


@pytest.mark.waits
def test_wait_on_a_slow_link(kx, server, volcano):
    """A process waits for a job and then reads its log. It gets all of the log, however slowly the log arrives.
    Meanwhile the state is shown immediately, and `status` and `why` report that output is missing."""
    server.faults.add("slow", times=99, amount=15000, delay=0.1, subresource="log")  # 150 kB/s
    job, (log,) = begin(kx, volcano)
    text = "".join(f"{i:099}\n" for i in range(24000))  # arrives in 16 s
    script = f"cat {job.dir}/wait && cat {job.dir}/log | wc -c && cat {job.dir}/main-0/log"
    with harness.popen(script, stdout=-1) as p:
        log.append(text)
        volcano.finish_all(volcano.pods(job.id))
        job.finish()
        assert job.status()["logs_waiting"] == 1
        harness.wait_for(lambda: "kxfs has not fetched the end of 1 log from the cluster yet." in job.read("why"), what="why")
        assert p.poll() is None
        said, size, rest = p.communicate(timeout=120)[0].decode().split("\n", 2)
    assert said == "SUCCEEDED" and int(size) == len(text) + 24000 * len("main/0 ") and rest == text
    harness.wait_for(lambda: job.status()["logs_waiting"] == 0)
    assert job.gap() == 0 and job.read("why") == ""


@pytest.mark.waits
def test_wait_for_output_that_stops(kx, server, volcano):
    """If the server sends no more of a log, `wait` ends, and `status` reports that output is missing."""
    server.faults.add("silent", times=99, subresource="log")
    job, (log,) = begin(kx, volcano)
    log.append("hello\n")
    volcano.finish_all(volcano.pods(job.id))
    assert harness.run(["cat", str(job / "wait")], timeout=60).stdout == "SUCCEEDED\n"
    assert job.status()["logs_waiting"] == 1 and "kxfs has not fetched the end of 1 log" in job.read("why")
    server.faults.clear()
    holds(job, b"hello\n")
    harness.wait_for(lambda: job.status()["logs_waiting"] == 0 and job.read("why") == "")


def test_runs_in_order(kx, volcano):
    """Late output of a finished run comes before the output of the next run in the merged log."""
    for _ in range(10):
        job, (log,) = begin(kx, volcano)
        (pod,) = volcano.pods(job.id)
        log.append("one\n")
        harness.wait_for(lambda job=job: job.read("log") == "main/0 one\n", what="the merged log")
        log.hold()
        log.append("two\n")
        begun = time.monotonic()
        volcano.restart_container(pod)
        volcano.log(pod, restart=1).append("three\n")
        harness.wait_for(lambda job=job: printed(job) == b"three\n", what="the next run's output")
        time.sleep(2)  # longer than a line waits for earlier lines of other replicas
        log.go_on()
        soon = time.monotonic() - begun < 4  # true if kxfs had not yet abandoned the run; otherwise nothing is checked
        volcano.finish(pod)
        job.finish()
        text = "".join(f"main/0 {line}\n" for line in ("one", "two", "three"))
        if soon:
            assert job.read("follow") == text
            return
    pytest.fail("this machine is too slow")
