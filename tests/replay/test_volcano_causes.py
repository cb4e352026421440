# SPDX-License-Identifier: MIT
"""Causes that remain true: the text of `why` and `status` while a job fails, is restarted, loses its node, or is
abandoned, on a Volcano that acts like the real one. Each sentence: tests/unit/spec/kinds/test-volcano_why.c."""

import json
import os
import select
import time

import harness
import pytest
import store as st
import watching


def edit_pod(server, pod, edit):
    assert server.store.change(st.PODS, "test", pod, edit) is not None


@pytest.fixture
def job(kx, volcano):
    """Return a job of one running replica."""
    job = kx.submit(harness.app("true"))
    volcano.start(job.id)
    watching.until_runs(job)
    return job


def until_why(job, text):
    harness.wait_for(lambda: job.read("why") == text, what=text)


def until_why_begins(job, text):
    """The end of a job may be reported before those of its pods, which have the reason."""
    harness.wait_for(lambda: job.read("why").startswith(text), what=text)


@pytest.mark.parametrize("told", [True, False], ids=["told", "never told"])
def test_wait_for_the_reason(server, volcano, job, told):
    """The job's end is reported before its pods': `wait` ends when `why` has their reasons, or after some seconds."""
    assert server.hold(resource="pods") == 1
    begin = time.monotonic()
    volcano.finish(volcano.pods(job.id)[0], 3)
    harness.wait_for(lambda: job.state() == "FAILED", what="the end")
    fd = os.open(job / "wait", os.O_RDONLY)
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    assert not poll.poll(0) or time.monotonic() > begin + 4
    assert job.read("why") == "The job failed: Failed.\n"
    server.hold(not told, resource="pods")
    assert os.read(fd, 100) == b"FAILED\n"
    os.close(fd)
    assert ("exit code 3" in job.read("why")) == told or time.monotonic() > begin + 4


def ended(code):
    return {"terminated": {"exitCode": code, "reason": "Error", "startedAt": "2026-11-22T10:00:00Z",
                           "finishedAt": "2026-11-22T10:01:00Z"}}


def test_crash_loop(server, volcano, job):
    """A container that its pod restarts repeatedly is not RUNNING, and no file contradicts another."""
    (pod,) = volcano.pods(job.id)

    def loop(tree):
        tree["spec"]["restartPolicy"] = "OnFailure"
        tree["status"]["containerStatuses"][0].update(
            restartCount=4, lastState=ended(3), state={"waiting": {
                "reason": "CrashLoopBackOff", "message": "back-off 2m40s restarting failed container=main-0"}})

    edit_pod(server, pod, loop)
    until_why(job, "main-0 ended with exit code 3. It was started 5 times so far, and is restarted at "
                   "2026-11-22T10:03:40Z. Its output is in main-0/log.\n")
    assert job.state() == job.replica()["state"] == "PENDING" and job.replica()["exit_code"] == 3
    volcano.run(pod)
    job.until("RUNNING")
    assert job.replica()["exit_code"] is None and job.read("why") == ""
    edit_pod(server, pod, lambda tree: tree["status"]["containerStatuses"][0].update(state=ended(5)))
    harness.wait_for(lambda: job.replica()["exit_code"] == 5)
    assert job.state() == job.replica()["state"] == "PENDING"
    assert "restarted automatically" in job.read("why")


def test_restarting(kx, server, volcano):
    """Between two attempts a job is PENDING."""
    del volcano
    tree = watching.job("theirs", "Restarting")
    server.store.add(st.JOBS, tree)
    job = harness.wait_for(lambda: kx.jobs() and kx.jobs()[0])
    job.until("PENDING")
    assert job.status()["phase"] == "Restarting"


def test_init_container(server, volcano, job):
    (pod,) = volcano.pods(job.id)

    def fail(tree):
        tree["spec"]["initContainers"] = [{"name": "prep", "image": "i"}]
        tree["status"].update(phase="Failed", initContainerStatuses=[
            {"name": "prep", "restartCount": 0, "state": ended(2), "lastState": {}}], containerStatuses=[
                {"name": "main-0", "restartCount": 0, "state": {"waiting": {"reason": "PodInitializing"}}}])

    edit_pod(server, pod, fail)
    job.finish("FAILED")
    why = "main-0 failed: init container prep: exit code 2. It was not retried, because max_retries is 0. "
    harness.wait_for(lambda: job.read("why") in (f"{why}The output of that container is in main-0/prep.log.\n",
                                                 f"{why}That container has printed nothing.\n"), what=why)
    assert (job / "main-0/prep.log").exists()


def test_signal(volcano, job):
    volcano.finish(volcano.pods(job.id)[0], 139)
    job.finish("FAILED")
    until_why_begins(job, "main-0 ended with exit code 139, which means signal 11 (SIGSEGV). It was not")


ERROR = {"message": {"message": "RuntimeError: boom", "errorCode": 1, "extraInfo": {
    "py_callstack": "Traceback (most recent call last):\n  File \"boom.py\", line 5\nRuntimeError: boom\n"}}}


@pytest.mark.parametrize("left, message, words", [
    (json.dumps(ERROR), "RuntimeError: boom",
     ["Traceback (most recent call last):", '  File "boom.py", line 5', "RuntimeError: boom"]),
    (json.dumps(ERROR)[30:], json.dumps(ERROR)[30:], ["a line of the log"]),
    ("one\n\ntwo\n", "one\n\ntwo\n", ["one", "two"]),
    ("", "exit code 1", ["a line of the log"]),
], ids=["structured", "cut", "text", "none"])
def test_last_words(kx, server, volcano, job, left, message, words):
    """The program's termination message, else the last lines of its log. A remount and history/ have them, too."""
    (pod,) = volcano.pods(job.id)
    why = "".join(f"    {line}\n" for line in words)
    volcano.log(pod).append("a line of the log\n")
    volcano.finish(pod, 1, message=left)
    assert job.read("wait") == "FAILED\n"
    assert job.read("why") == (f"main-0 ended with exit code 1. It was not retried, because "
                               f"max_retries is 0. Its output is in main-0/log. Its last "
                               f"words:\n{why}")
    assert job.status()["last_words"] == "\n".join(words) and job.replica()["message"] == message
    kx.restart()
    assert job.read("why").endswith(f"Its last words:\n{why}")
    server.store.remove(st.PODS, "test", pod)
    job.cancel()
    harness.wait_for(lambda: (job.old / "why").exists(), what="the history")
    assert (job.old / "why").read_text().endswith(f"Its last words:\n{why}")


def test_silent(volcano, job):
    """`why` names no log that is known to be complete and empty."""
    (pod,) = volcano.pods(job.id)
    volcano.finish(pod, 3)
    assert job.read("wait") == "FAILED\n"
    until_why(job, "main-0 ended with exit code 3. It was not retried, because max_retries is 0. It has printed nothing.\n")


@pytest.mark.parametrize("late", [False, True], ids=["in time", "never"])
def test_last_lines_come_late(volcano, job, late):
    """`wait` ends when the log with the last words is there, or after some seconds; `why` has them then."""
    (pod,) = volcano.pods(job.id)
    log = volcano.log(pod)
    log.append("one\n")
    job.until_logged("one\n")
    log.hold()
    log.append("two\n")
    begin = time.monotonic()
    volcano.finish(pod, 3)
    harness.wait_for(lambda: job.state() == "FAILED", what="the end")
    until_why(job, "main-0 ended with exit code 3. It was not retried, because "
                   "max_retries is 0. Its output is in main-0/log.\n")
    with open(job / "wait") as wait:
        poll = select.poll()
        poll.register(wait, select.POLLIN)
        assert not poll.poll(0) or time.monotonic() > begin + 4
        if not late:
            log.go_on()
        assert wait.read() == "FAILED\n" and (not late or time.monotonic() > begin + 4)
    if not late:
        assert job.status()["last_words"] == "one\ntwo"


def test_last_words_of_a_log_that_is_not_captured(server, volcano, make_mount):
    """`wait` does not wait for them, and they are there after the log was read."""
    kx = make_mount(server, options="capture=none")
    job = kx.submit(harness.app("true"))
    (pod,) = volcano.start(job.id)
    volcano.log(pod).append("one\n")
    volcano.finish(pod, 3)
    begin = time.monotonic()
    assert job.read("wait") == "FAILED\n"
    assert time.monotonic() < begin + 4 and job.status()["last_words"] == ""
    assert job.log() == b"one\n"
    harness.wait_for(lambda: job.status()["last_words"] == "one", what="the last words")


def test_given_up(kx, server, volcano):
    """Volcano ends a job whose pods it could not create; the cause remains, in history/ too."""
    volcano.schedule = False
    job = kx.submit(harness.app("true"))
    text = ('failed to create pod x, err: &errors.StatusError{ErrStatus:v1.Status{Message:"pods \\"x\\" is forbidden: '
            'error looking up service account test/sa: serviceaccount \\"sa\\" not found", Reason:"Forbidden"}}')
    volcano.remove_pods(job.id)
    owner = server.store.find(st.JOBS, "test", job.id)
    server.store.add(st.EVENTS, {
        "metadata": {"name": "unmade", "namespace": "test", "uid": "e-1", "creationTimestamp": st.now()},
        "involvedObject": {"kind": "Job", "name": owner.name, "uid": owner.uid}, "type": "Warning",
        "reason": "FailedCreate", "message": text, "count": 16, "lastTimestamp": st.now()})
    until_why(job, "The job waits: its pods can't be made: there is no service account sa in namespace test. Create it, or "
                   "submit the job with another service_account.\n")
    volcano.set_phase(job.id, "Terminating")
    volcano.set_phase(job.id, "Terminated")
    job.finish("FAILED")
    why = ("Volcano gave up after 16 tries: there is no service account sa in namespace test. Create it and submit the "
           "job again, or submit it with another service_account.\n")
    assert job.read("why") == why and job.status()["reason"] == "NoServiceAccount"
    server.store.remove(st.EVENTS, "test", "unmade")
    volcano.set_phase(job.id, "Terminated", version=2)
    assert job.read("why") == why


def test_lost_node(server, volcano, job):
    (pod,) = volcano.pods(job.id)
    edit_pod(server, pod, lambda tree: tree["status"].update(conditions=[
        {"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-22T10:00:00Z"}]))
    until_why(job, "main-0: its node node-1 has not reported since "
                   "2026-11-22T10:00:00Z. It is not known whether it still runs "
                   "until the node returns or is removed from the cluster.\n")
    edit_pod(server, pod, lambda tree: tree["metadata"].update(deletionTimestamp=st.now()))
    harness.wait_for(lambda: "and its pod is marked for eviction" in job.read("why"))
    assert job.status()["reason"] == "NodeLost"
    volcano.run(pod)
    edit_pod(server, pod, lambda tree: (tree["status"].update(conditions=[]), tree["metadata"].pop("deletionTimestamp")))
    until_why(job, "")


def test_probe(server, volcano, job):
    (pod,) = volcano.pods(job.id)
    uid = server.store.find(st.PODS, "test", pod).uid
    for reason, text in (("Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 500"),
                         ("Killing", "Container main-0 failed liveness probe")):
        server.store.add(st.EVENTS, {
            "metadata": {"name": reason.lower(), "namespace": "test", "uid": reason, "creationTimestamp": st.now()},
            "involvedObject": {"kind": "Pod", "name": pod, "uid": uid}, "type": "Warning", "reason": reason,
            "message": text, "count": 1, "lastTimestamp": st.now()})
    harness.wait_for(lambda: (job / "events").exists() and "failed liveness probe" in job.read("events"))
    volcano.finish(pod, 137)
    job.finish("FAILED")
    until_why_begins(job, "main-0 was terminated because its probe failed: Liveness probe "
                          "failed: HTTP probe failed with statuscode: 500. It was not retried")


def test_ended_by_a_policy(volcano, job):
    """TaskCompleted -> RestartJob, and no attempt is left: nothing has failed."""
    volcano.set_phase(job.id, "Restarting", retryCount=3)
    volcano.finish(volcano.pods(job.id)[0], 0)
    volcano.set_phase(job.id, "Failed")
    harness.wait_for(lambda: job.state() == "FAILED")  # SUCCEEDED, if its pods' watch was faster
    until_why(job, "The job failed by a policy of its own. main-0 ended with exit code 0. Retries used: 2; "
                   "max_retries is 0. Its output is in main-0/log.\n")
