# SPDX-License-Identifier: MIT
"""Runs of one container, and pods of one name, that follow faster than their events: no line of one is in the log of
another."""

import os
import time

import harness
import pytest
import replies

LOGS = {"resource": "pods", "subresource": "log"}


@pytest.fixture
def job(kx, volcano):
    """Return a job of one replica, whose container is restarted when it fails."""
    job = kx.submit(harness.app("true", retry_policy="REPLICA", max_retries=3))
    (pod,) = volcano.pods(job.id)
    volcano._edit_pods([pod], "test", lambda tree: tree["spec"].update(restartPolicy="OnFailure"))
    volcano.run(pod)
    return job


def print_run(volcano, job, run):
    volcano.log(volcano.pods(job.id)[0], restart=run).append(f"run {run}\n")


def logs_of(job):
    return {name: job.log(name=name) for name in os.listdir(job / "main-0") if name.startswith("log")}


def asked_which_run(server):
    return sum(bool(req.fields) for req in server.seen(resource="pods", verb="list", subresource=""))


def test_restarts_while_away(server, volcano, job):
    """The connection breaks, and the container is restarted twice. When the server is back, the list of pods takes
    some seconds, as in a large namespace: requests for the log of run 1 meanwhile return run 2's or run 3's."""
    pod = volcano.pods(job.id)[0]
    volcano.restart_container(pod)
    print_run(volcano, job, 1)
    job.until_logged("run 1\n")
    server.away()
    for run in (2, 3):
        volcano.restart_container(pod)
        print_run(volcano, job, run)
    server.expire()
    server.faults.add("slow", times=100, amount=40, delay=0.2, verb="list", resource="pods", fields="")
    server.back()
    job.until_logged("run 3\n")
    harness.wait_for(lambda: logs_of(job).get("log.2") == b"run 2\n", what="the run before the last one")
    assert logs_of(job) == {"log.0": b"", "log.1": b"run 1\n", "log.2": b"run 2\n", "log": b"run 3\n"}
    assert job.gap() == 1


@pytest.mark.parametrize("code", [200, 500])
def test_short_runs(server, volcano, job, code):
    """Run 1 prints within its first second and fails, while the server is unreachable; afterwards, its run is the
    one before the newest, which can't be fetched at first (500)."""
    pod = volcano.pods(job.id)[0]
    print_run(volcano, job, 0)
    job.until_logged("run 0\n")
    refused = server.faults.add("reply", times=10000, reply=replies.internal(), subresource="log")
    server.end_streams("reset", subresource="log")
    volcano.restart_container(pod)
    harness.wait_for(lambda: "log.0" in os.listdir(job / "main-0"), what="the news of run 1")
    print_run(volcano, job, 1)
    server.hold(resource="pods")
    volcano.restart_container(pod)
    print_run(volcano, job, 2)
    if code == 500:
        server.faults.add("reply", times=3, reply=replies.internal(), subresource="log", previous=True)
    asked = asked_which_run(server)
    server.faults.clear(refused)
    harness.wait_for(lambda: asked_which_run(server) > asked, what="the run to be asked for")
    time.sleep(1)
    server.hold(False, resource="pods")
    job.until_logged("run 2\n")
    harness.wait_for(lambda: logs_of(job).get("log.1") == b"run 1\n", what="run 1")
    assert logs_of(job) == {"log.0": b"run 0\n", "log.1": b"run 1\n", "log": b"run 2\n"}


def test_pod_that_printed_nothing(kx, server, volcano):
    """A pod has printed nothing when another one takes its name, and the watch is late: no request returns output of
    the first one."""
    job = kx.submit(harness.app("true", max_retries=1))
    (pod,) = volcano.start(job.id)
    harness.wait_for(lambda: server.open_streams(**LOGS), what="the stream")
    server.hold(resource="pods")
    volcano.finish(pod, 3)
    volcano.start(job.id)
    volcano.log(pod).append("second\n")
    harness.wait_for(lambda: asked_which_run(server), what="the pod to be asked for")
    time.sleep(1)
    server.hold(False, resource="pods")
    job.until_logged("second\n")
    assert job.log(name="log.0") == b""
